//! The API's description, by itself. What it promises is held by the attack on it, in the stack ring.

use std::collections::HashSet;

use serde_json::Value;

use crate::support::TestApp;

#[tokio::test]
async fn every_reference_leads_somewhere_and_every_operation_has_a_name_of_its_own() {
    let t = TestApp::start().await;
    let document = t.call("", "GET", "/openapi.json", None).await.is(200);
    let mut dangling = Vec::new();
    each_reference(&document, &mut |to| {
        let place = to.strip_prefix('#').unwrap();
        if document.pointer(place).is_none() {
            dangling.push(to.to_owned());
        }
    });
    assert!(dangling.is_empty(), "these lead nowhere: {dangling:?}");
    let mut names = HashSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let name = operation["operationId"].as_str().unwrap().to_owned();
            assert!(names.insert(name), "the name of {method} {path} is another's too");
        }
    }
    t.stop().await;
}

fn each_reference(value: &Value, seen: &mut impl FnMut(&str)) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(to)) = fields.get("$ref") {
                seen(to);
            }
            fields.values().for_each(|it| each_reference(it, seen));
        }
        Value::Array(items) => items.iter().for_each(|it| each_reference(it, seen)),
        _ => {}
    }
}
