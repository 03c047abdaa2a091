use super::*;

fn faults(html: &str) -> Vec<String> {
    read(html).faults.into_iter().map(|it| it.text).collect()
}

#[test]
fn a_variable_is_guarded_by_its_place() {
    for (html, guarded_html) in [
        ("<p>{{ a }}</p>", "<p>{{ a }}</p>"),
        ("<a title=\"{{ a }}\">", "<a title=\"{{ a }}\">"),
        ("<a href=\"{{ a }}\">", "<a href=\"{{ (a)|safe_url }}\">"),
        (
            "<A HREF = ' {{- a if b else (c) -}} '>",
            "<A HREF = ' {{- (a if b else (c))|safe_url -}} '>",
        ),
        (
            "<a href=\"{{ a|upper }}{{ b }}\">",
            "<a href=\"{{ (a|upper)|safe_url }}{{ (b)|safe_url }}\">",
        ),
        ("<a href=\"https://x/{{ a }}\">", "<a href=\"https://x/{{ a }}\">"),
        ("<a href=\"{{ a }}/{{ b }}\">", "<a href=\"{{ (a)|safe_url }}/{{ b }}\">"),
        (
            "<img srcset=\"{{ a }} 1x, {{ b }} 2x\">",
            "<img srcset=\"{{ (a)|safe_url }} 1x, {{ (b)|safe_url }} 2x\">",
        ),
        ("<p style=\"color:{{ a }}\">", "<p style=\"color:{{ (a)|css_value }}\">"),
        (
            "<style>a{color:{{ a }}}</style>{{ b }}",
            "<style>a{color:{{ (a)|css_value }}}</style>{{ b }}",
        ),
        ("<title>{{ a }}</title><!-- {{ b }} -->", "<title>{{ a }}</title><!-- {{ b }} -->"),
        (
            "<!--[if mso]><v:rect href=\"{{ a }}\"><![endif]-->{{ b }}",
            "<!--[if mso]><v:rect href=\"{{ (a)|safe_url }}\"><![endif]-->{{ b }}",
        ),
        (
            "<!--[if !mso]><!--><a href=\"{{ a }}\"><!--<![endif]-->",
            "<!--[if !mso]><!--><a href=\"{{ (a)|safe_url }}\"><!--<![endif]-->",
        ),
        (
            "{{ 'a }}' }}<a href=\"{{ \"}}\" }}\">",
            "{{ 'a }}' }}<a href=\"{{ (\"}}\")|safe_url }}\">",
        ),
        ("{% raw %}<a href={{ a }}>{% endraw %}", "{% raw %}<a href={{ a }}>{% endraw %}"),
    ] {
        assert_eq!(faults(html), Vec::<String>::new(), "{html}");
        assert_eq!(guarded(html), guarded_html);
    }
}

#[test]
fn places_where_escaping_does_not_help_are_refused() {
    for html in [
        "<a href={{ a }}>",
        "<a title={{ a }}>",
        "<a title=x{{ a }}>",
        "<a {{ a }}>",
        "<a x{{ a }}=\"b\">",
        "<{{ a }}>",
        "</{{ a }}>",
        "<p{{ a }}>",
        "<p onclick=\"{{ a }}\">",
        "<script>{{ a }}</script>",
        "<script></scriptx>{{ a }}</script>",
        "<iframe srcdoc=\"{{ a }}\"></iframe>",
        "<!doctype {{ a }}>",
        "<a href=\"javascript:{{ a }}\">",
        "<a href=\"{{ a }}:{{ b }}\">",
        "<a href=\"java{{ a }}:x\">",
        "<meta http-equiv=refresh content=\"0;url={{ a }}\">",
        "{% autoescape false %}{{ a }}{% endautoescape %}",
        "<a title=\"{% filter upper %}{{ a }}{% endfilter %}\">",
        "{% set x %}<a href={% endset %}",
        "{{ a }}<p",
    ] {
        assert_eq!(faults(html).len(), 1, "{html}: {:?}", faults(html));
    }
}

#[test]
fn branches_must_agree_on_the_place() {
    for html in [
        "{% if a %}<p>{% endif %}{{ b }}",
        "<td{% if a %} class=\"x\"{% endif %}>{{ b }}",
        "<input {% if a %}checked{% else %}title=\"{{ b }}\"{% endif %}>{{ b }}",
        "<a href={% if a %}\"{{ b }}\"{% else %}'/'{% endif %}>{{ b }}",
        "<a class=\"{% for c in cs %}{{ c }} {% else %}none{% endfor %}\">",
        "<a href=\"{% if a %}https://x{% else %}http://y{% endif %}/{{ b }}\">",
    ] {
        assert_eq!(faults(html), Vec::<String>::new(), "{html}");
    }
    for html in [
        "<a title={% if a %}\"{% endif %}{{ b }}\">",
        "{% if a %}<!--{% endif %}{{ b }}-->",
        "{% for a in b %}<a title=\"{% endfor %}\">",
        "<s{% if a %}cript{% endif %}>{{ b }}</s>",
        "<a {% if a %}title=\"{% else %}href=\"{% endif %}{{ b }}\">",
        "<p on{% if a %}click{% endif %}=\"{{ b }}\">",
    ] {
        assert!(!faults(html).is_empty(), "{html}");
    }
}

#[test]
fn warnings_name_what_may_not_be_meant() {
    let warned = |html: &str| read(html).warnings.len();
    assert_eq!(warned("<a href=\"https://x/?a={{ a }}\">"), 1);
    assert_eq!(warned("<a href=\"https://x/?a={{ a|urlencode }}#{{ b }}\">"), 0);
    assert_eq!(warned("{{ a|safe }}"), 1);
}
