// @ag-ui/core checks events with zod, which would compile its checks: the page's CSP forbids that, and zod's own attempt
// to find out is a violation on the console. Imported before everything else: the checks are made when it loads.

import { config } from "zod/v4";

config({ jitless: true });
