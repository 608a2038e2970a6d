# Lines of `wrangler tail --format json` as people read them: level, event, what it is about.
def known: ["level", "event", "object", "method", "route", "status", "durationMs", "requestId", "traceId"];
def pair: "\(.key)=\(.value)";
.logs[].message[] | (try fromjson catch empty)
| (to_entries | map(select(.key as $key | known | index($key) | not) | pair)) as $members
| [ (.level | . + " " * (5 - length)), (.event | . + " " * ([16 - length, 0] | max)) ]
  + (if .event == "request"
     then ["\(.method) \(.route // "?") \(.status) \(.durationMs)ms"] + $members
     else $members + (if .status then ["status=\(.status)"] else [] end) + (if .durationMs then ["durationMs=\(.durationMs)"] else [] end)
     end)
  + ["requestId=\(.requestId // "-")", "traceId=\(.traceId // "-")"]
| join(" ")
