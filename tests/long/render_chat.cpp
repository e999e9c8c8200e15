// Renders chat templates for tests/long/chat_templates.py. Each line of the input is a JSON object:
// "source", "variables" (an object; all of it but names that end in _token counts as a user's), and
// "now". Each line of the output has "text" and, per byte, "marks", or "error".
#include <iostream>
#include <nlohmann/json.hpp>

#include "chat/jinja/template.h"

int main() {
  using namespace bloomery;
  for (std::string line; std::getline(std::cin, line);) {
    const auto request = nlohmann::ordered_json::parse(line);
    nlohmann::ordered_json answer;
    try {
      const jinja::Template chat(request.at("source").get<std::string>(), "template");
      std::vector<jinja::Input> variables;
      for (const auto& item : request.at("variables").items()) {
        variables.push_back({item.key(), item.value().dump(), !item.key().ends_with("_token")});
      }
      jinja::RenderOptions options;
      options.now = request.at("now").get<std::int64_t>();
      const jinja::Text text = chat.render(variables, options);
      std::string marks;
      for (std::size_t i = 0; i < text.size(); ++i) marks += static_cast<char>('0' + text.mark(i));
      answer = {{"text", text.bytes()}, {"marks", marks}};
    } catch (const Error& error) {
      answer = {{"error", error.what()}};
    }
    std::cout << answer.dump() << std::endl;
  }
}
