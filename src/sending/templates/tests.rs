use serde_json::{Map, Value, json};

use super::{Source, render::render};
use crate::error::Issue;

fn source(subject: &str, html: &str, text: &str) -> Source {
    let some = |it: &str| (!it.is_empty()).then(|| it.to_owned());
    Source { subject: subject.to_owned(), html: some(html), text: some(text) }
}

fn data(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// The part `text`, rendered.
fn text(template: &str, with: Value) -> String {
    let rendered = render(&source("s", "", template), &data(with)).unwrap();
    assert!(rendered.missing.is_empty(), "{template}: {:?}", rendered.missing);
    rendered.text.unwrap()
}

fn html(template: &str, with: Value) -> String {
    assert_eq!(source("s", template, "").check(), [], "{template}");
    render(&source("s", template, ""), &data(with)).unwrap().html.unwrap()
}

fn fault(part: &str, template: &str, with: Value) -> Issue {
    let source = match part {
        "html" => source("s", template, ""),
        _ => source("s", "", template),
    };
    render(&source, &data(with)).unwrap_err()
}

fn missing(template: &str, with: Value) -> Vec<String> {
    let rendered = render(&source("s", "", template), &data(with)).unwrap();
    rendered.missing.into_iter().collect()
}

#[test]
fn the_language_is_jinja() {
    let order =
        json!({ "items": [{ "name": "a", "n": 2 }, { "name": "b", "n": 1.5 }], "vip": true });
    let template = "{% for it in items %}{{ loop.index }}:{{ it.name|upper }}×{{ it.n }}{% if not loop.last %}, {% endif %}{% endfor %}{% if vip %}!{% endif %}";
    assert_eq!(text(template, order), "1:A×2, 2:B×1.5!");
    assert_eq!(text("{{ name|default('you') }}", json!({})), "you");
    assert_eq!(text("{{ name|default('you') }}", json!({ "name": null })), "you");
    assert_eq!(text("{% if a is defined %}x{% else %}y{% endif %}", json!({})), "y");
    assert_eq!(text("{{ q|urlencode }}", json!({ "q": "a b&c=ü/" })), "a%20b%26c%3D%C3%BC/");
    assert_eq!(text("a\n", json!({})), "a");
}

#[test]
fn only_html_is_escaped() {
    let with = json!({ "a": "<b> & \"c\" 'd' /e" });
    let rendered = render(&source("{{ a }}", "{{ a }}", "{{ a }}"), &data(with)).unwrap();
    assert_eq!(rendered.subject, "<b> & \"c\" 'd' /e");
    assert_eq!(rendered.text.unwrap(), "<b> & \"c\" 'd' /e");
    assert_eq!(rendered.html.unwrap(), "&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39; /e");
    let twice = "{{ a }} {{ a|e }} {% set x %}{{ a }}{% endset %}{{ x }} {{ a|safe }}";
    assert_eq!(html(twice, json!({ "a": "<" })), "&lt; &lt; &lt; <");
}

#[test]
fn links_and_css_take_what_is_harmless() {
    let link = "<a href=\"{{ url }}\">";
    let url = json!({ "url": "https://a.example/?x=1&y=\"2" });
    assert_eq!(html(link, url), "<a href=\"https://a.example/?x=1&amp;y=&quot;2\">");
    let captured = "{% set u %}/?a=1&b={{ b }}{% endset %}<a href=\"{{ u }}\">";
    assert_eq!(html(captured, json!({ "b": "<" })), "<a href=\"/?a=1&amp;b=&lt;\">");
    for url in ["javascript:alert(1)", " JAVAscript:x", "data:text/html,x", "java\tscript:x"] {
        let why = fault("html", link, json!({ "url": url }));
        assert!(why.message.contains("line 1: ") && why.message.contains("https"), "{why:?}");
    }
    fault("html", "<a href=\"{{ a|safe }}\">", json!({ "a": "javascript:x" }));
    fault("html", "<a href=\"{{ a }}{{ b }}\">", json!({ "a": "java", "b": "script:x" }));
    assert_eq!(
        html("<p style=\"color:{{ c }}\">", json!({ "c": "#f00" })),
        "<p style=\"color:#f00\">"
    );
    fault("html", "<style>p{color:{{ c }}}</style>", json!({ "c": "red}body{display:none" }));
}

#[test]
fn every_missing_variable_is_named_by_its_path() {
    assert_eq!(
        missing("{{ b }} {{ a.x.y }} {{ b }} {{ c }}", json!({ "a": { "x": {} }, "c": 1 })),
        ["a.x.y", "b"]
    );
    let items = json!({ "items": [{ "n": 1 }, {}] });
    assert_eq!(missing("{% for it in items %}{{ it.n }}{% endfor %}", items), ["items.1.n"]);
    assert_eq!(
        missing("{% if a %}x{% endif %}{% for i in range(2) %}{{ b }}{% endfor %}", json!({})),
        ["a", "b"]
    );
    assert_eq!(missing("{{ a.b.c }}", json!({})), ["a"]);
    assert_eq!(missing("{{ a }}{{ a > 1 }}", json!({})), ["a"]);
    assert_eq!(missing("{{ null }}{{ a }}", json!({ "null": 1, "a": null })), ["a"]);
    let shown =
        render(&source("Hi {{ who }}", "", "{{ a.b }}"), &data(json!({ "a": {} }))).unwrap();
    assert_eq!(
        (shown.subject.as_str(), shown.text.as_deref()),
        ("Hi {{ who }}", Some("{{ a.b }}"))
    );
}

#[test]
fn what_has_no_form_is_not_printed() {
    for with in [json!({ "a": [1] }), json!({ "a": { "b": 1 } })] {
        assert!(fault("text", "x\n{{ a }}", with).message.starts_with("line 2: "));
    }
    fault("text", "{% for it in a %}{{ it }}{% endfor %}", json!({ "a": [null] }));
    fault("text", "{{ 1 + 'a' }}", json!({}));
}

#[test]
fn time_and_memory_are_bounded() {
    let bomb = "{% set a = 'xxxxxxxxxxxxxxxx' %}".to_owned() + &"{% set a = a ~ a %}".repeat(40);
    let captured = "{% set a %}xxxxxxxx{% endset %}".to_owned()
        + &"{% set a %}{{ a }}{{ a }}{% endset %}".repeat(40);
    for template in [
        "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}",
        "{{ 'x' * 99999999 }}",
        "{{ '%099999999d'|format(1) }}",
        "{{ 'x'|indent(99999999, true) }}",
        &bomb,
        &captured,
    ] {
        let why = fault("text", template, json!({}));
        assert!(why.message.contains("memory"), "{template}: {why:?}");
    }
    let why = fault(
        "text",
        "{% for a in range(60) %}{{ b }}{% endfor %}",
        json!({ "b": "x".repeat(100_000) }),
    );
    assert!(why.message.contains("renders to over"), "{why:?}");
}

#[test]
fn nothing_else_can_be_reached() {
    for template in [
        "{% include 'a' %}",
        "{% extends 'a' %}",
        "{% import 'a' as b %}",
        "{% from 'a' import b %}",
        "{% block a %}{% endblock %}",
        "{% macro a() %}{% endmacro %}",
    ] {
        let issues = source("s", "", template).check();
        assert_eq!(issues.len(), 1, "{template}");
        assert!(issues[0].message.starts_with("line 1, column 4: syntax error"), "{issues:?}");
    }
    for (template, place) in [
        ("{{ debug() }}", "line 1, column 4: there is no function debug"),
        ("{{ a|pprint }}", "line 1, column 6: there is no filter pprint"),
        ("a\n{% if x %}{{ a|tojson }}{% endif %}", "line 2, column 16: there is no filter tojson"),
        ("{{ a is odder }}", "line 1, column 9: there is no test odder"),
        ("{{ a.upper() }}", "line 1, column 5: values have no method upper: look for a filter"),
    ] {
        let issues = source("s", "", template).check();
        assert_eq!(issues, [Issue::new("text", place)], "{template}");
    }
    let own = "{% for a in range(2) recursive %}{{ loop.cycle('x', 'y') }}{% if a is number %}{{ loop([]) }}{% endif %}{% endfor %}";
    assert_eq!(source("s", "", own).check(), []);
    assert_eq!(text(own, json!({})), "xy");
    assert_eq!(missing("{{ self }}{{ env }}", json!({})), ["env", "self"]);
}

#[test]
fn a_fault_of_the_source_has_its_place() {
    for (template, place) in [
        ("Hello {{ name", "line 1, column"),
        ("one\n  ü {% if %}", "line 2, column 11: "),
        ("one\n{% if a %}\nthree", "line 2, column 11: "),
        ("{{ 'a }}", "line 1, column 9: "),
    ] {
        let issues = source("s", "", template).check();
        assert!(issues[0].message.starts_with(place), "{template}: {issues:?}");
        assert_eq!(issues[0].path, "text");
    }
    let issues = source("s", "<p>\n  <a href={{ u }}>", "").check();
    assert_eq!(issues[0].message, "line 2, column 14: put the attribute's value in quotes");
    assert_eq!(source(" ", "", "").check().len(), 2);
    assert_eq!(source("s", "", &"x".repeat(512 * 1024 + 1)).check().len(), 1);
    assert_eq!(source("s", "", "a\u{0}").check().len(), 1);
}

#[test]
fn variables_and_warnings_are_told() {
    let it = source(
        "{{ a }}",
        "{% for x in items %}{{ x.y }}{{ user.name|safe }}{% endfor %}{{ range(3)|length }}",
        "",
    );
    let names: Vec<String> = it.variables().into_iter().collect();
    assert_eq!(names, ["a", "items", "user.name"]);
    let paths: Vec<String> = it.warnings().into_iter().map(|it| it.path).collect();
    assert_eq!(paths, ["html", "text"]);
}
