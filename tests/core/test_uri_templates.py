"""URI templates: expansion as RFC 6570 has it, and the match that is its inverse."""

from __future__ import annotations

import time
from typing import Any, Final

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mcp_core.uri_templates import MAX_URI, InvalidUriTemplate, TemplateIndex, UriTemplate, expand
from tests.property.strategies import fast

VALUES: Final[dict[str, Any]] = {
    "count": ["one", "two", "three"],
    "dom": ["example", "com"],
    "dub": "me/too",
    "hello": "Hello World!",
    "half": "50%",
    "var": "value",
    "who": "fred",
    "base": "http://example.com/home/",
    "path": "/foo/bar",
    "list": ["red", "green", "blue"],
    "keys": {"semi": ";", "dot": ".", "comma": ","},
    "v": "6",
    "x": "1024",
    "y": "768",
    "empty": "",
    "empty_keys": {},
    "undef": None,
}
"""The variables of the examples of RFC 6570, section 3.2."""

EXPANSIONS: Final = {
    "{count}": "one,two,three",
    "{count*}": "one,two,three",
    "{/count}": "/one,two,three",
    "{/count*}": "/one/two/three",
    "{;count}": ";count=one,two,three",
    "{;count*}": ";count=one;count=two;count=three",
    "{?count}": "?count=one,two,three",
    "{?count*}": "?count=one&count=two&count=three",
    "{&count*}": "&count=one&count=two&count=three",
    "{hello}": "Hello%20World%21",
    "{half}": "50%25",
    "O{empty}X": "OX",
    "O{undef}X": "OX",
    "{x,y}": "1024,768",
    "{x,hello,y}": "1024,Hello%20World%21,768",
    "?{x,empty}": "?1024,",
    "?{x,undef}": "?1024",
    "?{undef,y}": "?768",
    "{var:3}": "val",
    "{var:30}": "value",
    "{list}": "red,green,blue",
    "{keys}": "semi,%3B,dot,.,comma,%2C",
    "{keys*}": "semi=%3B,dot=.,comma=%2C",
    "{+hello}": "Hello%20World!",
    "{+half}": "50%25",
    "{base}index": "http%3A%2F%2Fexample.com%2Fhome%2Findex",
    "{+base}index": "http://example.com/home/index",
    "up{+path}{var}/here": "up/foo/barvalue/here",
    "{+path,x}/here": "/foo/bar,1024/here",
    "{+path:6}/here": "/foo/b/here",
    "{+keys}": "semi,;,dot,.,comma,,",
    "{+keys*}": "semi=;,dot=.,comma=,",
    "{#path,x}/here": "#/foo/bar,1024/here",
    "{#keys*}": "#semi=;,dot=.,comma=,",
    "foo{#empty}": "foo#",
    "foo{#undef}": "foo",
    "www{.dom*}": "www.example.com",
    "X{.var:3}": "X.val",
    "X{.empty}": "X.",
    "X{.list}": "X.red,green,blue",
    "X{.keys*}": "X.semi=%3B.dot=..comma=%2C",
    "X{.empty_keys}": "X",
    "{/var:1,var}": "/v/value",
    "{/list*,path:4}": "/red/green/blue/%2Ffoo",
    "{/keys*}": "/semi=%3B/dot=./comma=%2C",
    "{;v,empty,who}": ";v=6;empty;who=fred",
    "{;hello:5}": ";hello=Hello",
    "{;keys}": ";keys=semi,%3B,dot,.,comma,%2C",
    "{;keys*}": ";semi=%3B;dot=.;comma=%2C",
    "{?x,y,undef}": "?x=1024&y=768",
    "{?x,y,empty}": "?x=1024&y=768&empty=",
    "{?keys*}": "?semi=%3B&dot=.&comma=%2C",
    "?fixed=yes{&x}": "?fixed=yes&x=1024",
    "{&var:3}": "&var=val",
}


@pytest.mark.parametrize(("template", "uri"), EXPANSIONS.items())
def test_templates_expand_as_the_rfc_says(template: str, uri: str) -> None:
    assert expand(template, VALUES) == uri


MATCHES: Final[list[tuple[str, str, Any]]] = [
    ("a://{x}", "a://1", {"x": "1"}),
    ("a://{x}", "a://1/2", None),
    ("a://{x}", "a://a%2Fb", {"x": "a/b"}),
    ("a://{x}", "a://a%2525", {"x": "a%25"}),
    ("a://{x}", "a://ü", {"x": "ü"}),
    ("a://{x}", "a://%C3%BC", {"x": "ü"}),
    ("a://{x}", "a://%ff", None),
    ("a://{x}", "a://50%", None),
    ("a://{x}", "a://1;b", {"x": "1;b"}),
    ("{a}-{b}", "a-b-c", {"a": "a-b", "b": "c"}),
    ("{x}x{y}", "xxx", {"x": "xx", "y": ""}),
    ("{x}{.y}", "f.tar.gz", {"x": "f.tar", "y": "gz"}),
    ("{a}/x/{b}", "x/x/x", {"a": "x", "b": "x"}),
    ("{a}/{+path}/end", "1/a/b/end", {"a": "1", "path": "a/b"}),
    ("{a}/{+path}/end", "1//end", {"a": "1", "path": ""}),
    ("{+p}/v{n}", "a/v1/v2", {"p": "a/v1", "n": "2"}),
    ("{+p}{.ext}", "a/b.tar.gz", {"p": "a/b.tar", "ext": "gz"}),
    ("{+p}{.ext}", "noext", None),
    ("a://{+p}", "a://a/../b", {"p": "a/../b"}),
    ("a://{+p}", "a://a?b", None),
    ("x{.e}", "x.json", {"e": "json"}),
    ("x{.e}", "x.tar.gz", None),
    ("x{.e*}", "x.a.b", {"e": ["a", "b"]}),
    ("x{.e*}", "x", {"e": []}),
    ("x{/s}", "x/a/b", None),
    ("x{/s*}", "x//a", {"s": ["", "a"]}),
    ("x{/s*}", "x", {"s": []}),
    ("x{/s*}", "xa", None),
    ("{x}{/y*}", "1/a/b", {"x": "1", "y": ["a", "b"]}),
    ("{x}{/y*}", "1", {"x": "1", "y": []}),
    ("x{;k}", "x;k=v", {"k": "v"}),
    ("x{;k}", "x;k", {"k": ""}),
    ("x{;k}", "x;other=v", None),
    ("x{;k,l}", "x;k=1;l=2", {"k": "1", "l": "2"}),
    ("x{;k,l}", "x;l=2;k=1", None),
    ("x{;k*}", "x;k=a;k=b", {"k": ["a", "b"]}),
    ("x{;k*}", "x;k=a;l=b", None),
    ("x{#f}", "x#a/b", {"f": "a/b"}),
    ("x{#f}", "x", None),
    ("{a}{;k}/{+p}", "1;k=2/3/4", {"a": "1", "k": "2", "p": "3/4"}),
    ("x{?a,b}", "x?b=1&c=2&a=3&a=4", {"a": "3", "b": "1"}),
    ("x{?a,b}", "x", {}),
    ("x{?a,b}", "x?a", {"a": ""}),
    ("x{?a}{&b}", "x?b=1%26", {"b": "1&"}),
    ("x{?a}", "x?a=b+c=d#top", {"a": "b+c=d"}),
    ("x{?a}", "x?a=%zz", None),
    ("x?fixed=1{&page}", "x?fixed=1&page=2", {"page": "2"}),
    ("x?fixed=1{&page}", "x?page=2&fixed=1", None),
    ("rules", "rules", {}),
    ("rules", "rules?x=1", None),
    ("{scheme}://any", "b://any", {"scheme": "b"}),
    ("A://X/{z}", "a://x/1", None),
    ("a://{x}", "a://" + "1" * MAX_URI, None),
]


@pytest.mark.parametrize(("template", "uri", "found"), MATCHES)
def test_a_match_finds_the_values(template: str, uri: str, found: Any) -> None:
    assert UriTemplate.parse(template).match(uri) == found


@pytest.mark.parametrize(
    ("template", "text", "position"),
    [
        ("a://{x", "Unclosed expression at position 4", 4),
        ("a://x}", "Unopened brace: write %7D for a literal one at position 5", 5),
        ("a://{}", "Empty expression at position 4", 4),
        ("a://{?}", "Expression has operator but no variables at position 4", 4),
        ("a://{x-y}", "Invalid variable name 'x-y' at position 4", 4),
        ("a://{x:.*}", "Invalid modifier ':.*' of 'x'; write {+x} for a value with slashes at position 4", 4),
        ("a://{x:3}", "Prefix modifier {var:N} is not supported (in 'x:3' at position 4)", None),
        ("a://{x*}", "Explode modifier on {x*} is not supported for matching", None),
        ("a://{?q*}", "Explode modifier on {?q*} is not supported for matching", None),
        ("a://{x}/{x}", "Variable 'x' appears more than once; repeated variables are not supported", None),
        ("a://{x}{;y}{?x}", "Variable 'x' appears more than once; repeated variables are not supported", None),
        ("a://{?a}{?b}", "Template contains more than one {?...} expression; use {?a,b} or {?a}{&b} for", None),
        ("a://{?a}/b", "{?...} must end the template, for {&...} alone may follow it", None),
        ("a://{x}{y}", "Variables 'x' and 'y' are adjacent with no literal separator; matching cannot", None),
        ("a://{x}{.y*}/{z}", "Variables 'x' and 'y' are adjacent with no literal separator; matching", None),
        ("a://{+x}/{+y}", "Template contains more than one multi-segment variable ({+var}, {#var}, or", None),
        ("a" * 8193, "Template exceeds maximum length of 8192", None),
        ("/".join(f"{{v{n}}}" for n in range(257)), "Template exceeds maximum of 256 variables", None),
    ],
)
def test_what_cannot_be_undone_is_refused_with_the_reason(template: str, text: str, position: int | None) -> None:
    with pytest.raises(InvalidUriTemplate) as caught:
        UriTemplate(template)
    assert str(caught.value).startswith(text)
    assert caught.value.position == position


def test_a_template_knows_its_variables() -> None:
    template = UriTemplate("a://{x}{/y*}{?q,r}")
    assert template.variable_names == ["x", "y", "q", "r"]
    assert template.query_variable_names == ["q", "r"]
    assert (template.prefix, repr(template)) == ("a://", "UriTemplate('a://{x}{/y*}{?q,r}')")
    assert [UriTemplate.is_template(text) for text in ("a://x", "a://{x}")] == [False, True]


def test_only_texts_expand_what_is_matched() -> None:
    with pytest.raises(TypeError, match="Variable 'x' must be str or a sequence of str, got int"):
        UriTemplate("a://{x}").expand({"x": 5})  # type: ignore[dict-item] # pyright: ignore[reportArgumentType]


# --- properties ---------------------------------------------------------------------------------------------

texts: Final = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)
names: Final = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=4, unique=True)
operators: Final = st.sampled_from(["{%s}", "{/%s}", "{;%s}", "{.%s}"])
literals: Final = st.sampled_from(["/", "/x/", "-and-", "/v=", "~"])
ends: Final = st.sampled_from(["", "{+m}", "/{+m}", "{/m*}", "{#m}", "{?m}", "{?m,n}"])


def value_of(template: str, name: str) -> st.SearchStrategy[Any]:
    """Values that their expression can carry: reserved expansion leaves what ends it, and escapes, as they are."""
    if f"{{+{name}}}" in template or f"{{#{name}}}" in template:
        return texts.map(lambda text: text.translate(str.maketrans("?#%", "___")))
    if f"{{.{name}}}" in template:
        return texts.map(lambda text: text.replace(".", "_"))
    return st.lists(texts, min_size=1, max_size=3) if f"{{/{name}*}}" in template else texts


@given(st.data())
@fast
def test_match_undoes_expand(data: st.DataObject) -> None:
    parts = [data.draw(operators) % name + data.draw(literals) for name in data.draw(names)]
    text = "a://" + "".join(parts) + data.draw(ends)
    try:
        template = UriTemplate(text)
    except InvalidUriTemplate:
        assume(False)
        raise
    values: dict[str, Any] = {name: data.draw(value_of(text, name)) for name in template.variable_names}
    uri = template.expand(values)
    found = template.match(uri)
    assert found is not None
    assert template.expand(found) == uri  # other values may give the same URI where a literal is in them
    if not any(mark in text for mark in ("{+m}", "{#m}", "-and-", "~", "{.")):
        assert found == values


@given(
    st.text(st.sampled_from("a:/?#&,;=.%2F{}+"), max_size=40), st.text(st.sampled_from("a:/?#&,;=.%2F"), max_size=40)
)
@fast
def test_a_match_expands_to_what_matches_again(text: str, uri: str) -> None:
    try:
        template = UriTemplate(text)
    except InvalidUriTemplate:
        return
    found = template.match(uri)
    if found is not None:
        assert template.match(template.expand(found)) == found


# --- many templates, and cost ---------------------------------------------------------------------------------


def index_of(*templates: str) -> TemplateIndex[str]:
    index: TemplateIndex[str] = TemplateIndex()
    for template in templates:
        index.add(UriTemplate(template), template)
    return index


@pytest.mark.parametrize(
    ("uri", "wanted"),
    [
        ("o://books/1", "o://books/{b}"),
        ("o://films/1", "o://{a}/{b}"),
        ("o://films/1/2", "o://{+all}"),
        ("o://books/1/2", "o://{+all}"),
        ("p://x", None),
        ("x", None),
    ],
)
def test_the_most_specific_template_is_found_whatever_the_order(uri: str, wanted: str | None) -> None:
    templates = ["o://{+all}", "o://{a}/{b}", "o://books/{b}", "o://{c}/{d}"]
    for order in (templates, [templates[2], templates[1], templates[0], templates[3]]):
        found = index_of(*order).match(uri)
        assert (None if found is None else found[0]) == wanted


def test_a_template_can_be_removed() -> None:
    index = index_of("o://books/{b}", "o://{a}/{b}")
    index.remove(UriTemplate("o://books/{b}"))
    assert index.match("o://books/1") == ("o://{a}/{b}", {"a": "books", "b": "1"})
    assert len(index) == 1
    with pytest.raises(KeyError):
        index.remove(UriTemplate("o://books/{b}"))


def spent(act: Any) -> float:
    took: list[float] = []
    for _ in range(5):
        began = time.process_time()
        act()
        took.append(time.process_time() - began)
    return min(took)


def test_a_look_up_costs_the_same_however_many_prefixes_there_are() -> None:
    def cost(number: int) -> float:
        index = index_of(*(f"docs://area-{n}/{{name}}/text" for n in range(number)))
        uris = [f"docs://area-{n % number}/a/text" for n in range(0, 200 * 37, 37)]
        return spent(lambda: [index.match(uri) for uri in uris])

    assert cost(10_000) < 10 * cost(10) + 0.01


MANY_NAMES: Final = f"a{{?{','.join(f'n{number}' for number in range(200))}}}"


@pytest.mark.parametrize("template", ["{a}x{b}x{c}x{d}", "a://{+p}/{x}", "a{/s*}", "a{;k*}", "a{?q,r}", MANY_NAMES])
def test_a_match_is_linear_in_the_uri(template: str) -> None:
    parsed = UriTemplate(template)

    def cost(size: int) -> float:
        uris = [
            "x" * size,
            "a://" + "/x" * (size // 2),
            "a" + "/" * size,
            "a" + ";k=" * (size // 3),
            "a?" + "&q" * size,
        ]
        return spent(lambda: [parsed.match(uri[:MAX_URI]) for uri in uris])

    assert cost(60_000) < 40 * cost(6_000) + 0.02
