#include "tokenizer/train/trained_files.h"

#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/folder.h"

namespace bloomery {
namespace {

// The expression as the engine of Hugging Face's library must see it to divide a text as our
// scanner does. There `{1,3}+` is not possessive but repeats, and `$` also matches before every
// newline, which the possessive \s++ makes harmless: what follows it is no white space.
std::string regex_of(SplitPattern pattern) {
  switch (pattern) {
    case SplitPattern::cl100k:
      return R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s++$|\s*[\r\n]+|\s+(?!\S)|\s+)";
    case SplitPattern::llama3:
      return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
    case SplitPattern::qwen2:
      return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
    case SplitPattern::qwen3_5:
      return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
    case SplitPattern::o200k:
      return R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
             R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
             R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
    case SplitPattern::gpt2:
    case SplitPattern::none:
      break;
  }
  return {};
}

nlohmann::ordered_json byte_level(bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

nlohmann::ordered_json pre_tokenizer(SplitPattern pattern) {
  const std::string regex = regex_of(pattern);
  if (regex.empty()) return byte_level(pattern == SplitPattern::gpt2);
  const nlohmann::ordered_json split = {{"type", "Split"},
                                        {"pattern", {{"Regex", regex}}},
                                        {"behavior", "Isolated"},
                                        {"invert", false}};
  return {{"type", "Sequence"},
          {"pretokenizers", nlohmann::ordered_json::array({split, byte_level(false)})}};
}

nlohmann::ordered_json added_tokens(const TrainedBpe& trained) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (std::size_t id = 0; id < trained.special_tokens.size(); ++id) {
    list.push_back({{"id", id},
                    {"content", trained.special_tokens[id]},
                    {"single_word", false},
                    {"lstrip", false},
                    {"rstrip", false},
                    {"normalized", false},
                    {"special", true}});
  }
  return list;
}

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

// {"token": id, ...} by id, with `separator` after the commas. By hand, because the library's
// objects that keep an order take quadratic time.
std::string vocabulary(const TrainedBpe& trained, std::string_view separator) {
  std::string text = "{";
  for (std::size_t id = 0; id < trained.tokens.size(); ++id) {
    if (id > 0) text.append(",").append(separator);
    text.append(quoted(trained.tokens[id])).append(": ").append(std::to_string(id));
  }
  return text + "}";
}

const std::string& token(const TrainedBpe& trained, TokenId id) {
  return trained.tokens[static_cast<std::size_t>(id)];
}

std::string merge_list(const TrainedBpe& trained) {
  std::string text = "[";
  for (const auto& [left, right] : trained.merges) {
    if (text.size() > 1) text += ",\n";
    text.append("[").append(quoted(token(trained, left))).append(", ");
    text.append(quoted(token(trained, right))).append("]");
  }
  return text + "]";
}

}  // namespace

std::string tokenizer_json(const TrainedBpe& trained, SplitPattern pattern) {
  const auto lines = [](const nlohmann::ordered_json& value) { return value.dump(2); };
  std::string text = "{\n\"version\": \"1.0\",\n\"truncation\": null,\n\"padding\": null,\n";
  text += "\"added_tokens\": " + lines(added_tokens(trained)) + ",\n\"normalizer\": null,\n";
  text += "\"pre_tokenizer\": " + lines(pre_tokenizer(pattern)) + ",\n\"post_processor\": null,\n";
  text += "\"decoder\": " + lines(byte_level(true)) + ",\n";
  text +=
      "\"model\": {\n\"type\": \"BPE\",\n\"dropout\": null,\n\"unk_token\": null,\n"
      "\"continuing_subword_prefix\": null,\n\"end_of_word_suffix\": null,\n\"fuse_unk\": false,\n"
      "\"byte_fallback\": false,\n\"ignore_merges\": false,\n";
  text += "\"vocab\": " + vocabulary(trained, "\n") + ",\n";
  text += "\"merges\": " + merge_list(trained) + "\n}\n}\n";
  return text;
}

std::string vocab_json(const TrainedBpe& trained) { return vocabulary(trained, " "); }

std::string merges_txt(const TrainedBpe& trained) {
  std::string text = "#version: 0.2\n";
  for (const auto& [left, right] : trained.merges) {
    text.append(token(trained, left)).append(" ").append(token(trained, right)).append("\n");
  }
  return text;
}

void check_folder(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  fs::path nearest = fs::absolute(folder);
  std::error_code error;
  while (!fs::exists(nearest, error)) nearest = nearest.parent_path();
  check(fs::is_directory(nearest, error), "--output ", folder.string(),
        ": the folder cannot be made: ", nearest.string(), " is a file");
  check(access(nearest.c_str(), W_OK) == 0, "--output ", folder.string(), ": ", nearest.string(),
        " cannot be written to; give another folder");
}

void write_tokenizer(const std::filesystem::path& folder, const TrainedBpe& trained,
                     SplitPattern pattern) {
  check_folder(folder);
  std::optional<StagedFolder> staged;
  if (!std::filesystem::exists(folder)) staged.emplace(folder);
  const std::filesystem::path to = staged ? staged->path() : folder;
  AtomicFile tokenizer(to / "tokenizer.json"), vocab(to / "vocab.json"), merges(to / "merges.txt");
  tokenizer.write(tokenizer_json(trained, pattern));
  vocab.write(vocab_json(trained));
  merges.write(merges_txt(trained));
  for (AtomicFile* file : {&tokenizer, &vocab, &merges}) {
    file->sync();
  }
  for (AtomicFile* file : {&vocab, &merges, &tokenizer}) {
    file->commit();
  }
  if (staged) staged->commit();
}

}  // namespace bloomery
