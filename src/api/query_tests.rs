use super::*;

fn threads(query: &str) -> Result<ThreadListRequest, Vec<(String, String)>> {
    Query::parse(query)
        .thread_list(ResourceId::new("ada"))
        .map_err(issues)
}

fn messages(query: &str) -> Result<MessageListRequest, Vec<(String, String)>> {
    let thread_id = ThreadId::new("t");
    Query::parse(query)
        .message_list(thread_id, MessageForm::Mastra)
        .map_err(issues)
}

fn issues(error: ApiError) -> Vec<(String, String)> {
    assert_eq!((error.status(), error.code.as_str()), (400, "invalid_query"));
    error
        .issues
        .iter()
        .cloned()
        .map(|issue| (issue.pointer, issue.message))
        .collect()
}

fn wrong(faults: &[(&str, &str)]) -> Vec<(String, String)> {
    faults
        .iter()
        .map(|(name, message)| ((*name).to_owned(), (*message).to_owned()))
        .collect()
}

fn default_threads() -> ThreadListRequest {
    ThreadListRequest {
        owner: ResourceId::new("ada"),
        order: ThreadOrder::UpdatedAt,
        descending: true,
        search: None,
        limit: 100,
        start: PageStart::Offset(0),
    }
}

fn default_messages() -> MessageListRequest {
    MessageListRequest {
        thread_id: ThreadId::new("t"),
        limit: 100,
        offset: 0,
        form: MessageForm::Mastra,
        with_superseded: false,
    }
}

#[test]
fn a_query_string_is_decoded_like_a_form() {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        Query::parse("?a=1+2&&b%20c=%C3%A9%2B&d&=e&f=g=h&a=%FF").parameters,
        [
            pair("a", "1 2"),
            pair("b c", "é+"),
            pair("d", ""),
            pair("", "e"),
            pair("f", "g=h"),
            pair("a", "\u{fffd}")
        ]
    );
    assert_eq!(Query::parse(""), Query::default());
    assert_eq!(Query::parse("?a=1&a=2").first("a"), Some("1"));
}

#[test]
fn the_owner_may_be_absent_empty_or_given() {
    let resource = |query| Query::parse(query).resource().map_err(issues);
    assert_eq!(resource("x=1"), Ok(ClientResource::Absent));
    assert_eq!(resource("resourceId="), Ok(ClientResource::Empty));
    assert_eq!(resource("resourceId"), Ok(ClientResource::Empty));
    assert_eq!(
        resource("resourceId=a%40b.test"),
        Ok(ClientResource::Given(ResourceId::new("a@b.test")))
    );
    let fault = wrong(&[("/resourceId", "must not contain control characters")]);
    assert_eq!(resource("resourceId=%0A"), Err(fault));
}

#[test]
fn pages_of_threads_are_asked_for_in_two_dialects() {
    let page = |limit, offset| ThreadListRequest {
        limit,
        start: PageStart::Offset(offset),
        ..default_threads()
    };
    for (query, request) in [
        ("", page(100, 0)),
        ("agentId=ioAgent&resourceId=ada", page(100, 0)),
        ("limit=&offset=", page(100, 0)),
        ("limit=7&offset=21", page(7, 21)),
        ("page=3&perPage=7", page(7, 21)),
        ("page=2", page(100, 200)),
        ("limit=5&perPage=7&page=2", page(5, 10)),
        ("limit=101", page(100, 0)),
        (
            "perPage=99999999999999999999999&offset=99999999999999999999999",
            page(100, NUMBER_MAX),
        ),
        ("page=9007199254740991", page(100, NUMBER_MAX)),
    ] {
        assert_eq!(threads(query), Ok(request), "{query}");
    }
    let cursor = ThreadListRequest {
        start: PageStart::Cursor("a=b".to_owned()),
        ..default_threads()
    };
    assert_eq!(threads("cursor=a%3Db&offset=4"), Ok(cursor));
}

#[test]
fn threads_are_ordered_in_two_dialects() {
    for (query, order, descending) in [
        ("orderBy=createdAt", ThreadOrder::CreatedAt, true),
        ("orderBy=createdAt&direction=ASC", ThreadOrder::CreatedAt, false),
        ("direction=asc", ThreadOrder::UpdatedAt, false),
        (
            r#"orderBy={"field":"createdAt","direction":"ASC"}"#,
            ThreadOrder::CreatedAt,
            false,
        ),
        (
            "orderBy=%7B%22direction%22%3A%22ASC%22%7D",
            ThreadOrder::UpdatedAt,
            false,
        ),
        (
            r#"orderBy={"field":"createdAt","direction":"ASC"}&direction=DESC"#,
            ThreadOrder::CreatedAt,
            true,
        ),
    ] {
        assert_eq!(
            threads(query),
            Ok(ThreadListRequest {
                order,
                descending,
                ..default_threads()
            }),
            "{query}"
        );
    }
}

#[test]
fn every_wrong_parameter_is_named() {
    let order = ("/orderBy", "must be updatedAt or createdAt");
    assert_eq!(
        threads("limit=0&offset=-1&page=x&perPage=1.5&orderBy=title&direction=up"),
        Err(wrong(&[
            ("/limit", "must be a whole number from 1"),
            ("/perPage", "must be a whole number from 1"),
            ("/offset", "must be a whole number from 0"),
            ("/page", "must be a whole number from 0"),
            order,
            ("/direction", "must have the direction ASC or DESC"),
        ]))
    );
    assert_eq!(threads("orderBy={nope"), Err(wrong(&[order])));
    assert_eq!(threads(r#"orderBy={"field":1}"#), Err(wrong(&[order])));
    let direction = ("/orderBy", "must have the direction ASC or DESC");
    assert_eq!(threads(r#"orderBy={"direction":"up"}"#), Err(wrong(&[direction])));
    assert_eq!(
        messages("format=xml&superseded=1&limit=%2B1"),
        Err(wrong(&[
            ("/limit", "must be a whole number from 1"),
            ("/format", "must be mastra or ag-ui"),
            ("/superseded", "must be true or false"),
        ]))
    );
}

#[test]
fn pages_of_messages_have_their_own_bounds_and_forms() {
    assert_eq!(messages(""), Ok(default_messages()));
    let asked = MessageListRequest {
        limit: 500,
        offset: 9,
        form: MessageForm::AgUi,
        with_superseded: true,
        ..default_messages()
    };
    assert_eq!(
        messages("limit=501&offset=9&format=ag-ui&superseded=true"),
        Ok(asked)
    );
    let by_default = Query::parse("superseded=false").message_list(ThreadId::new("t"), MessageForm::AgUi);
    assert_eq!(
        by_default,
        Ok(MessageListRequest {
            form: MessageForm::AgUi,
            ..default_messages()
        })
    );
}

#[test]
fn a_viewer_says_what_it_has_seen() {
    let address = ObjectAddress::from_hex(&"0f".repeat(32)).unwrap();
    let query = Query::parse(&format!(
        "after=12&generation=1&address={}",
        address.to_base64url()
    ));
    let asked = RunEventsRequest {
        after_count: 12,
        generation: Some(1),
        address: Some(address),
    };
    assert_eq!(query.run_events(), Ok(asked));
    assert_eq!(query.run_address(), Ok(Some(address)));
    let nothing = RunEventsRequest {
        after_count: 0,
        generation: None,
        address: None,
    };
    assert_eq!(Query::parse("").run_events(), Ok(nothing));
    assert_eq!(
        Query::parse("after=-1&generation=x&address=y")
            .run_events()
            .map_err(issues),
        Err(wrong(&[
            ("/after", "must be a whole number from 0"),
            ("/generation", "must be a whole number from 0"),
            ("/address", "must be the io-run-address of a run"),
        ]))
    );
}

#[test]
fn a_search_is_a_text_without_the_blanks_around_it() {
    let search = |query: &str| threads(query).map(|request| request.search);
    assert_eq!(
        search("q=+Z%C3%BCrich+50%25_+"),
        Ok(Some("Zürich 50%_".to_owned()))
    );
    assert_eq!(search("q="), Ok(None));
    assert_eq!(search("q=++"), Ok(None));
    assert_eq!(
        search(&format!("q={}", "%C3%A9".repeat(512))),
        Ok(Some("é".repeat(512)))
    );
    assert_eq!(
        search(&format!("q={}", "x".repeat(513))),
        Err(wrong(&[("/q", "must have at most 512 characters")]))
    );
}
