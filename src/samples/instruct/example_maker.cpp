#include "samples/instruct/example_maker.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_scan.h"
#include "chat/jinja/string_literal.h"
#include "samples/instruct/completion_mask.h"

namespace bloomery {
namespace {

bool is_wanted(const std::string& json, const std::string& only) {
  const std::size_t equals = only.find('=');
  check(equals != std::string::npos, "--only ", only, ": give COLUMN=VALUE");
  check_json_depth(json);
  const auto record = nlohmann::ordered_json::parse(json, nullptr, false);
  const auto column = record.is_object() ? record.find(only.substr(0, equals)) : record.end();
  return column != record.end() && column->is_string() &&
         column->get<std::string>() == only.substr(equals + 1);
}

}  // namespace

ExampleMaker::ExampleMaker(const InstructOptions& options, const Tokenizer& tokenizer,
                           const RecordTemplate& how)
    : options_(options),
      prompt_(how.source, how.name, how.is_chat, tokenizer),
      encoder_(tokenizer, !prompt_.is_chat()) {
  check(options.instruction_template.empty() || !options.response_template.empty(),
        "--instruction-template needs --response-template");
  response_ = encoder_.encode_plain(jinja::unescape(options.response_template));
  instruction_ = encoder_.encode_plain(jinja::unescape(options.instruction_template));
}

void ExampleMaker::make(const std::string& json, std::vector<InstructExample>& examples) {
  if (!options_.only.empty() && !is_wanted(json, options_.only)) {
    return;
  }
  if (options_.pairs) {
    const PreferenceRecord pair = read_preference(json);
    InstructExample chosen = encoded(prompt_.render(pair, true, marks_count()));
    InstructExample rejected = encoded(prompt_.render(pair, false, marks_count()));
    examples.push_back(std::move(chosen));
    examples.push_back(std::move(rejected));
    return;
  }
  const Record record = read_record(json, options_.format);
  check(!record.has_two_answers || prompt_.mentions("chosen"),
        "the record is a preference pair ('chosen' and 'rejected'): train on it with --dpo, or on "
        "the chosen answer with a --prompt-template FILE with {{ chosen }}");
  examples.push_back(encoded(prompt_.render(record, marks_count())));
}

InstructExample ExampleMaker::encoded(const jinja::Text& text) {
  if (marks_count()) {
    MarkedTokens tokens = encoder_.encode(text);
    return {std::move(tokens.ids), std::move(tokens.generated)};
  }
  InstructExample example{encoder_.ids(text), {}};
  if (options_.loss_on == LossOn::all) {
    example.loss_mask.assign(example.ids.size(), 1);
  } else {
    example.loss_mask = completion_mask(example.ids, response_, instruction_);
  }
  return example;
}

}  // namespace bloomery
