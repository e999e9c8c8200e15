#include "tokenizer/hf/folder_notes.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/json_scan.h"

namespace bloomery::hf {
namespace {

nlohmann::ordered_json read_object(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return nlohmann::ordered_json::object();
  const std::string text = read_file(path);
  try {
    check_json_depth(text);
  } catch (const Error& error) {
    throw Error(concat(path.string(), ": ", error.what()));
  }
  nlohmann::ordered_json root =
      nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  check(root.is_object(), path.string(), " is not a JSON object");
  return root;
}

// "</s>" or {"content": "</s>", ...}; empty for anything else.
std::string content_of(const nlohmann::ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object() && value.contains("content") && value["content"].is_string()) {
    return value["content"].get<std::string>();
  }
  return {};
}

nlohmann::ordered_json as_added(const nlohmann::ordered_json& value, bool special) {
  nlohmann::ordered_json token = value.is_object() ? value : nlohmann::ordered_json::object();
  token["content"] = content_of(value);
  if (!token.contains("special")) token["special"] = special;
  if (!token.contains("normalized")) token["normalized"] = !special;
  return token;
}

// The tokens that a file gives a part to, in the order in which they are added.
class NotesReader {
 public:
  SpecialTokenNames names;

  void read_special(const nlohmann::ordered_json& file) {
    const std::pair<const char*, std::string*> fields[] = {
        {"bos_token", &names.bos},  {"eos_token", &names.eos}, {"unk_token", &names.unk},
        {"sep_token", &names.sep},  {"pad_token", &names.pad}, {"cls_token", &names.cls},
        {"mask_token", &names.mask}};
    for (const auto& [field, name] : fields) {
      if (!file.contains(field) || !name->empty()) continue;
      *name = content_of(file[field]);
      keep(file[field]);
    }
    for (const char* field : {"additional_special_tokens", "extra_special_tokens"}) {
      if (!file.contains(field) || !file[field].is_array()) continue;
      for (const nlohmann::ordered_json& token : file[field]) keep(token);
    }
  }

  void read_added(const nlohmann::ordered_json& decoder, const nlohmann::ordered_json& by_content,
                  nlohmann::ordered_json& added) {
    std::map<std::int64_t, nlohmann::ordered_json> by_id;
    for (const auto& [content, id] : by_content.items()) {
      check(id.is_number_integer(), "added_tokens.json: the id of '", content, "' is no number");
      by_id[id.get<std::int64_t>()] = as_added(content, contents_.contains(content));
    }
    for (const auto& [id, token] : decoder.items()) {
      const bool is_number =
          !id.empty() && id.size() < 10 && id.find_first_not_of("0123456789") == std::string::npos;
      check(is_number && !content_of(token).empty(),
            "tokenizer_config.json: added_tokens_decoder has something that is no token: '", id,
            "'");
      by_id[std::stoll(id)] = as_added(token, false);
    }
    for (auto& [id, token] : by_id) added.push_back(std::move(token));
    for (nlohmann::ordered_json& token : special_) added.push_back(std::move(token));
  }

 private:
  void keep(const nlohmann::ordered_json& value) {
    const std::string content = content_of(value);
    if (content.empty() || !contents_.insert(content).second) return;
    special_.push_back(as_added(value, true));
    special_.back()["special"] = true;
  }

  std::vector<nlohmann::ordered_json> special_;
  std::set<std::string> contents_;
};

}  // namespace

SpecialTokenNames read_folder_notes(const std::filesystem::path& folder,
                                    nlohmann::ordered_json& config, nlohmann::ordered_json& added) {
  config = read_object(folder / "tokenizer_config.json");
  added = nlohmann::ordered_json::array();
  NotesReader reader;
  reader.read_special(config);
  reader.read_special(read_object(folder / "special_tokens_map.json"));
  const auto decoder = config.find("added_tokens_decoder");
  const bool has_decoder = decoder != config.end() && decoder->is_object();
  reader.read_added(has_decoder ? *decoder : nlohmann::ordered_json::object(),
                    read_object(folder / "added_tokens.json"), added);
  return reader.names;
}

void add_tokens(const nlohmann::ordered_json& added, nlohmann::ordered_json& root) {
  if (!root.is_object()) return;  // an error that is found later
  nlohmann::ordered_json& list = root["added_tokens"];
  if (list.is_null()) list = nlohmann::ordered_json::array();
  check(list.is_array(), "added_tokens is not an array");
  std::set<std::string> known;
  for (const nlohmann::ordered_json& token : list) known.insert(content_of(token));
  for (const nlohmann::ordered_json& token : added) {
    if (known.insert(content_of(token)).second) list.push_back(token);
  }
}

}  // namespace bloomery::hf
