#include "apps/serve/text_generation_cli.h"

#include <charconv>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/common/command_line.h"
#include "apps/generate/line_editor.h"
#include "apps/serve/http_request.h"

namespace bloomery {
namespace {

using Json = nlohmann::json;

// Zero: the text is none.
std::int64_t token_count(const std::string& text) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  return error == std::errc() && end == text.data() + text.size() && count > 0 ? count : 0;
}

// What Megatron's servers say: an object, or a bare string where a request is wrong.
void print_answer(const HttpAnswer& answer, std::ostream& out) {
  const Json json = Json::parse(answer.body, nullptr, false);
  const auto text = json.find("text");
  if (answer.status == 200 && json.is_object() && text != json.end() && text->is_array() &&
      !text->empty() && text->front().is_string()) {
    out << "Megatron Response: \n" << text->front().get<std::string>() << std::endl;
    return;
  }
  const bool has_message =
      json.is_object() && json.contains("message") && json["message"].is_string();
  out << "Error " << answer.status << ": "
      << (has_message        ? json["message"].get<std::string>()
          : json.is_string() ? json.get<std::string>()
                             : answer.body)
      << std::endl;
}

void converse_with(const std::string& server, std::ostream& out) {
  const NextLine next_prompt = typed_lines("Enter prompt: ");
  const NextLine next_count = typed_lines("Enter number of tokens to generate: ");
  const char* const key = std::getenv("BLOOMERY_API_KEY");
  while (const std::optional<std::string> prompt = next_prompt()) {
    const std::optional<std::string> count = next_count();
    if (!count) {
      return;
    }
    const std::int64_t tokens = token_count(*count);
    if (tokens == 0) {
      out << "'" << *count << "' is no number of tokens: give one above 0" << std::endl;
      continue;
    }
    const Json request = {{"prompts", {*prompt}}, {"tokens_to_generate", tokens}};
    const std::string body = request.dump(-1, ' ', false, Json::error_handler_t::replace);
    print_answer(put_json(server, "/api", body, key == nullptr ? "" : key), out);
  }
}

}  // namespace

int text_generation_cli(const Arguments& arguments, std::ostream& out) {
  std::string server;
  OptionTable table;
  table.section("where");
  table.add("server", server, "Address of the server, HOST:PORT.").positional().required();
  if (!read_options(table, arguments, out,
                    "usage: bloomery text_generation_cli HOST:PORT\n\nAsks for a prompt and a "
                    "number of tokens, and prints what the server answers to PUT /api. The "
                    "variable BLOOMERY_API_KEY has the key of a server that needs one. `bloomery "
                    "chat` talks to a model without a server.\n\nexample:\n  bloomery "
                    "text_generation_cli localhost:5000\n")) {
    return 0;
  }
  check_server_address(server);
  converse_with(server, out);
  return 0;
}

}  // namespace bloomery
