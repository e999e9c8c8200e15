#include "checkpoint/tokenizer_files.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/model_record.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCarried = "carried_tokenizer";
constexpr const char* kFolder = ".";  // a path that is the folder of the files
constexpr const char* kChatTemplateFile = "chat_template.jinja";
constexpr const char* kNames[] = {"tokenizer.json",
                                  "tokenizer_config.json",
                                  "special_tokens_map.json",
                                  "added_tokens.json",
                                  "vocab.json",
                                  "merges.txt",
                                  "vocab.txt",
                                  "tokenizer.model",
                                  "spiece.model",
                                  kChatTemplateFile};

std::array<std::string*, 4> paths_of(TokenizerOptions& options) {
  return {&options.path, &options.tokenizer_model, &options.vocab_file, &options.merge_file};
}

// Letters, digits and "-_.": what a file of a checkpoint may be called. Tensors have their own.
std::string plain_name(const fs::path& path) {
  std::string name = path.filename().string();
  for (char& c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.';
    c = plain ? c : '_';
  }
  return name.starts_with('.') || name.ends_with(kTensorsExtension) ? "tokenizer_" + name + "_"
                                                                    : name;
}

std::string name_of(const TokenizerOptions& options, const fs::path& path) {
  if (path == options.merge_file) {
    return "merges.txt";
  }
  if (path == options.vocab_file) {
    return options.merge_file.empty() ? "vocab.txt" : "vocab.json";
  }
  const std::string extension = path.extension().string();
  return extension == ".json"    ? "tokenizer.json"
         : extension == ".model" ? "tokenizer.model"
                                 : plain_name(path);
}

}  // namespace

std::vector<TokenizerFile> tokenizer_files(const TokenizerOptions& options) {
  std::vector<TokenizerFile> files;
  TokenizerOptions named = options;
  fs::path beside;
  for (const std::string* option : paths_of(named)) {
    const fs::path path = *option;
    if (path.empty()) {
      continue;
    }
    if (!fs::is_directory(path)) {
      files.push_back({name_of(options, path), path});
      beside = path.parent_path() / kChatTemplateFile;
      continue;
    }
    for (const char* name : kNames) {
      if (fs::exists(path / name)) {
        files.push_back({name, path / name});
      }
    }
  }
  if (!beside.empty() && fs::exists(beside)) {
    files.push_back({kChatTemplateFile, beside});
  }
  return files;
}

std::shared_ptr<const std::vector<SnapshotFile>> read_tokenizer_files(
    const TokenizerOptions& options, const std::string& chat_template) {
  auto files = std::make_shared<std::vector<SnapshotFile>>();
  for (const TokenizerFile& file : tokenizer_files(options)) {
    if (file.name != kChatTemplateFile || chat_template.empty()) {
      files->push_back({file.name, read_file(file.source)});
    }
  }
  if (!chat_template.empty()) {
    files->push_back({kChatTemplateFile, chat_template});
  }
  return files;
}

void set_carried_tokenizer(RunState& state, const TokenizerOptions& options) {
  TokenizerOptions carried = options;
  for (std::string* path : paths_of(carried)) {
    if (!path->empty()) {
      *path = fs::is_directory(*path) ? kFolder : name_of(options, *path);
    }
  }
  state.extra[kCarried] = to_json(carried);
}

std::optional<TokenizerOptions> carried_tokenizer(const CheckpointReader& checkpoint) {
  const auto& extra = checkpoint.state().extra;
  const auto found = extra.find(kCarried);
  if (found == extra.end()) {
    return std::nullopt;
  }
  const std::string place = checkpoint.folder().string();
  TokenizerOptions options =
      tokenizer_options_from_json(found->second, concat(place, ": ", kCarried));
  for (const ManifestFile& file : checkpoint.manifest().files) {
    if (!file.name.ends_with(kTensorsExtension)) {
      checkpoint.read_file(file.name);
    }
  }
  for (std::string* path : paths_of(options)) {
    if (*path == kFolder) {
      *path = fs::absolute(checkpoint.folder()).string();
    } else if (!path->empty()) {
      checkpoint.read_file(*path);  // an Error when it is not there
      *path = fs::absolute(checkpoint.folder() / *path).string();
    }
  }
  return options;
}

void require_same_tokenizer(const CheckpointReader& checkpoint,
                            const std::vector<SnapshotFile>& files) {
  if (!checkpoint.state().extra.contains(kCarried)) {
    return;
  }
  const std::string place = checkpoint.folder().string();
  const auto differ = [&](const std::string& name, const char* how) {
    throw Error(concat("the tokenizer is not the one that ", place, " was trained with: ", name,
                       " ", how,
                       "; its own is in that folder, and --finetune starts with another one"));
  };
  std::size_t carried = 0;
  for (const ManifestFile& file : checkpoint.manifest().files) {
    if (file.name.ends_with(kTensorsExtension) || file.name == kChatTemplateFile) {
      continue;
    }
    ++carried;
    const auto found = std::ranges::find(files, file.name, &SnapshotFile::name);
    if (found == files.end()) {
      differ(file.name, "is not among its files");
    } else if (found->contents != checkpoint.read_file(file.name)) {
      differ(file.name, "is another");
    }
  }
  const auto given = files.size() - static_cast<std::size_t>(std::ranges::count(
                                        files, kChatTemplateFile, &SnapshotFile::name));
  check(carried == given, "the tokenizer has ", given, " files, and that of ", place, " has ",
        carried, "; give the one that it was trained with, or --finetune");
}

}  // namespace bloomery
