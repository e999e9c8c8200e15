#include "tokenizer/hf/post_processor.h"

#include "base/error.h"
#include "config/json_fields.h"

namespace bloomery::hf {
namespace {

// "cls": ["[CLS]", 101]
TokenId read_pair(const JsonFields& fields, const char* name) {
  const auto [token, id] = fields.get<std::pair<std::string, std::int64_t>>(name);
  if (id < 0 || id > INT32_MAX) fields.fail(name, "a token and its id");
  return static_cast<TokenId>(id);
}

void append_special(const JsonFields& fields, const std::string& name, std::vector<TokenId>& ids) {
  const auto all = fields.find<JsonFields>("special_tokens");
  fields.require(all && all->has(name), "the template names '", name,
                 "', which special_tokens does not have");
  for (const std::int64_t id : all->get<JsonFields>(name).get<std::vector<std::int64_t>>("ids")) {
    fields.require(0 <= id && id <= INT32_MAX, "the id ", id, " of '", name, "' is not a token id");
    ids.push_back(static_cast<TokenId>(id));
  }
}

PostProcessor read_template(const JsonFields& fields) {
  PostProcessor result;
  int texts = 0;
  for (const JsonFields& part : fields.get<std::vector<JsonFields>>("single")) {
    if (const auto special = part.find<JsonFields>("SpecialToken")) {
      append_special(fields, special->get<std::string>("id"),
                     texts == 0 ? result.before : result.after);
    } else {
      ++texts;
    }
  }
  fields.require(texts == 1, "single holds the text ", texts,
                 " times; only templates that hold it once are supported");
  return result;
}

}  // namespace

PostProcessor read_post_processor(const JsonFields& object) {
  const std::string type = object.get<std::string>("type");
  const JsonFields fields = object.named("post_processor " + type);
  if (type == "TemplateProcessing") return read_template(fields);
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    return {{read_pair(fields, "cls")}, {read_pair(fields, "sep")}};
  }
  if (type == "ByteLevel") return {};  // changes offsets only
  check(type == "Sequence", "post_processor of type '", type, "' is not known");
  PostProcessor result;
  for (const JsonFields& part : fields.get<std::vector<JsonFields>>("processors")) {
    const PostProcessor next = read_post_processor(part);
    result.before.insert(result.before.begin(), next.before.begin(), next.before.end());
    result.after.insert(result.after.end(), next.after.begin(), next.after.end());
  }
  return result;
}

}  // namespace bloomery::hf
