#include "tokenizer/hf/post_processor.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tokenizer/hf/json_fields.h"

namespace bloomery::hf {
namespace {

// "cls": ["[CLS]", 101]
TokenId read_pair(const Fields& fields, const char* name) {
  const nlohmann::json& pair = fields.array(name);
  if (pair.size() != 2 || !pair[1].is_number_unsigned() ||
      pair[1].get<std::uint64_t>() > INT32_MAX) {
    fields.fail(name, "a token and its id");
  }
  return pair[1].get<TokenId>();
}

void append_special(const Fields& fields, const std::string& name, std::vector<TokenId>& ids) {
  const nlohmann::json* all = fields.find("special_tokens");
  check(all != nullptr && all->is_object() && all->contains(name), fields.where(),
        ": the template names '", name, "', which special_tokens does not have");
  for (const nlohmann::json& id : Fields(all->at(name), fields.where()).array("ids")) {
    check(id.is_number_unsigned() && id.get<std::uint64_t>() <= INT32_MAX, fields.where(),
          ": the id ", id.dump(), " of '", name, "' is not a token id");
    ids.push_back(id.get<TokenId>());
  }
}

PostProcessor read_template(const Fields& fields) {
  PostProcessor result;
  int texts = 0;
  for (const nlohmann::json& part : fields.array("single")) {
    check(part.is_object(), fields.where(), ".single holds something that is not an object");
    if (part.contains("SpecialToken")) {
      const Fields special(part.at("SpecialToken"), fields.where() + ".single");
      append_special(fields, special.text("id"), texts == 0 ? result.before : result.after);
    } else {
      ++texts;
    }
  }
  check(texts == 1, fields.where(), ".single holds the text ", texts,
        " times; only templates that hold it once are supported");
  return result;
}

}  // namespace

PostProcessor read_post_processor(const nlohmann::json& object) {
  const std::string type = Fields(object, "post_processor").type();
  const Fields fields(object, "post_processor " + type);
  if (type == "TemplateProcessing") return read_template(fields);
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    return {{read_pair(fields, "cls")}, {read_pair(fields, "sep")}};
  }
  if (type == "ByteLevel") return {};  // changes offsets only
  check(type == "Sequence", "post_processor of type '", type, "' is not known");
  PostProcessor result;
  for (const nlohmann::json& part : fields.array("processors")) {
    const PostProcessor next = read_post_processor(part);
    result.before.insert(result.before.begin(), next.before.begin(), next.before.end());
    result.after.insert(result.after.end(), next.after.begin(), next.after.end());
  }
  return result;
}

}  // namespace bloomery::hf
