#include "chat/jinja/template.h"

#include <gtest/gtest.h>

namespace bloomery::jinja {
namespace {

std::string render(std::string_view source, const std::vector<Input>& variables = {}) {
  return Template(source, "t").render(variables).bytes();
}

std::string error_of(std::string_view source, const RenderOptions& options = {}) {
  try {
    return "no error: " + Template(source, "t").render({}, options).bytes();
  } catch (const Error& error) {
    return error.what();
  }
}

struct Case {
  const char* source;
  const char* text;
};

// What Jinja 3.1 gives (tests/long/chat_templates.py compares whole templates with it).
class Renders : public testing::TestWithParam<Case> {};

TEST_P(Renders, AsJinjaDoes) { EXPECT_EQ(render(GetParam().source), GetParam().text); }

INSTANTIATE_TEST_SUITE_P(
    WhiteSpace, Renders,
    testing::Values(Case{"a\n  {% if true %}\n  b\n  {% endif %}\nc\n", "a\n  b\nc"},
                    Case{"a  {%- if true -%}  b  {%- endif %} c", "ab c"},
                    Case{"  {%+ if true +%}\nb{% endif %}", "  \nb"},
                    Case{"{# note #}\nx{#- note -#}  y", "xy"}, Case{"a\r\nb{{ '' }}\n", "a\nb"},
                    Case{"{% raw %}{{ x }}{% endraw %}!", "{{ x }}!"},
                    Case{"x {{- ' y ' -}} z", "x y z"}, Case{"  {{ 1 }}\n", "  1"}));

INSTANTIATE_TEST_SUITE_P(
    Expressions, Renders,
    testing::Values(
        Case{"{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }}",
             "3 -4 2 3.5 1024"},
        Case{"{{ 1 < 2 < 3 }} {{ 'a' in 'cat' }} {{ 4 not in [1] }}", "True True True"},
        Case{"{{ 'äöü'[1] }}{{ 'abc'[::-1] }}{{ [1, 2, 3][-2:] }}", "öcba[2, 3]"},
        Case{"{{ 'a' ~ 1 ~ none ~ x }}", "a1None"},
        Case{"{{ (1,) }} {{ {'k': \"it's\"} }}", "(1,) {'k': \"it's\"}"},
        Case{"{{ 1e16 }} {{ 0.1 }} {{ 1.0 }} {{ 1e-5 }}", "1e+16 0.1 1.0 1e-05"},
        Case{"{{ 'yes' if x is defined else 'no' }}", "no"},
        Case{"{{ {'items': 3}.items is callable }} {{ {'items': 3}['items'] }}", "True 3"},
        Case{"{{ [3, 1, 2] | sort | join('-') }} {{ 'x' * 3 }}", "1-2-3 xxx"},
        Case{"{{ {'b': [1, none], 'a': 'é\"'} | tojson }}", "{\"b\": [1, null], \"a\": \"é\\\"\"}"},
        Case{"{{ {'a': [1]} | tojson(indent=2) }}", "{\n  \"a\": [\n    1\n  ]\n}"},
        Case{"{{ 'a b  c'.split() }} {{ 'a--b'.split('--', 1)[1] }}", "['a', 'b', 'c'] b"},
        Case{"{{ '%s is %05.1f' | format('x', 2.25) }} {{ '{}-{b}'.format(1, b=2) }}",
             "x is 002.2 1-2"},
        Case{"{{ [{'r': 'u'}, {'r': 's'}] | selectattr('r', 'equalto', 's') | list | length }}",
             "1"},
        Case{"{{ ([] | map('upper')) and true }} {{ not [] }}", "True True"}));

INSTANTIATE_TEST_SUITE_P(
    Statements, Renders,
    testing::Values(
        Case{"{{ ('<' | safe | trim) + '<' }}{{ ('<' | safe) ~ '<' }}", "<&lt;<<"},
        Case{"{% set x = 1 %}{% for i in [1, 2] %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}",
             "231"},
        Case{"{% set ns = namespace(n=0) %}{% for i in range(4) %}{% set ns.n = ns.n + i %}{% "
             "endfor %}{{ ns.n }}",
             "6"},
        Case{"{% for k, v in {'a': 1}.items() %}{{ k }}{{ v }}{{ loop.last }}{% endfor %}",
             "a1True"},
        Case{"{% for i in [1, 2, 3, 4] if i % 2 %}{{ i }}/{{ loop.length }} {% else %}none{% "
             "endfor %}",
             "1/2 3/2 "},
        Case{"{% for i in [] %}{% else %}none{% endfor %}", "none"},
        Case{"{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% "
             "break %}{% endif %}{{ i }}{% endfor %}",
             "02"},
        Case{"{% macro m(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(b=1, a=0) }}",
             "1201"},
        Case{"{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}x{% endcall %}", "<x>"},
        Case{"{% set t %} a {% endset %}[{{ t }}]{% filter upper %}b{% endfilter %}", "[ a ]B"},
        Case{
            "{% for i in [[1], []] recursive %}({{ loop(i) if i is iterable else i }}){% endfor %}",
            "((1))()"},
        Case{"{% generation %}{% set y = 1 %}{{ y }}{% endgeneration %}{{ y }}", "1"}));

TEST(ChatTemplate, NamesTheLineOfAnError) {
  EXPECT_EQ(error_of("a\n{{ 1 + 'x' }}"), "t: line 2: cannot compute a number + a text");
  EXPECT_EQ(error_of("{% if %}x{% endif %}"), "t: line 1: expected a value before '%}'");
  EXPECT_EQ(error_of("\n{{ x.y }}"), "t: line 2: 'y' of 'x', which is undefined");
  EXPECT_EQ(error_of("{% for i in [1] %}"), "t: line 1: the template ends before {% endfor %}");
  EXPECT_EQ(error_of("{% include 'x' %}"),
            "t: line 1: {% include %} is not known in chat templates");
  EXPECT_EQ(error_of("{{ raise_exception('no tools') }}"),
            "t: line 1: the template refuses this conversation: no tools");
}

TEST(ChatTemplate, StopsWhatWouldNotEnd) {
  RenderOptions small;
  small.limits = {.steps = 10'000, .bytes = 1 << 20, .depth = 100};
  const auto has = [&](std::string_view source, std::string_view what) {
    EXPECT_NE(error_of(source, small).find(what), std::string::npos)
        << source << " gives " << error_of(source, small);
  };
  has("{% for i in range(999) %}{% for j in range(500) %}{% endfor %}{% endfor %}",
      "more than 10000 steps");
  has("{{ 'x' * 10 ** 12 }}", "more than 1048576 bytes");
  has("{{ ('x' * 1000) | replace('', 'y' * 2000) }}", "more than 1048576 bytes");
  has("{% set ns = namespace(s='xxxx') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% "
      "endfor %}",
      "more than 1048576 bytes");
  has("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "nest more than 100 deep");
  has("{% set l = [] %}{% set x = l.append(l) %}{{ l }}", "nested more than 100 deep");
  has("{{ " + std::string(5000, '(') + std::string(5000, ')') + " }}", "nest more than");
  std::string chain = "{{ 1";
  for (int i = 0; i < 100'000; ++i) chain += "+1";
  has(chain + " }}", "nest more than");
  has("{% for i in range(10**9) %}{% endfor %}", "more than 100000 numbers");
  has("{{ 2 ** 64 }}", "does not fit 64 bits");
  has("{{ '%99999999d' | format(1) }}", "wider than");
}

std::string marks_of(const Text& text) {
  std::string marks;
  for (std::size_t i = 0; i < text.size(); ++i) marks += static_cast<char>('0' + text.mark(i));
  return marks;
}

TEST(ChatTemplate, KnowsWhatAUserWrote) {
  const std::vector<Input> variables = {{"m", R"({"role": "ab", "content": " <s> "})", true},
                                        {"bos_token", R"("<s>")"}};
  const auto marks = [&](std::string_view source) {
    return marks_of(Template(source, "t").render(variables));
  };
  EXPECT_EQ(marks("{{ bos_token + m.role }}"), "00011");
  EXPECT_EQ(marks("[{{ m.content | trim }}]"), "01110");
  EXPECT_EQ(marks("{{ m.content.strip()[1:2] | upper ~ 'x' }}"), "10");
  EXPECT_EQ(marks("{{ m.role | tojson }}"), "0110");
  EXPECT_EQ(marks("{{ '-%s' | format(m.role) }}{{ '{}-'.format(m.role) }}"), "011110");
  EXPECT_EQ(marks("{{ m.role.replace('b', 'cc') }}{{ [m.role, 'x'] | join(',') }}"), "1001100");
  EXPECT_EQ(marks("{% generation %}{{ m.role }}.{% endgeneration %}."), "3320");
}

}  // namespace
}  // namespace bloomery::jinja
