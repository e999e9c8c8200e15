// The bytes of every file that conversions write are those of tests/golden/converted.txt, which
// BLOOMERY_WRITE_GOLDEN=1 writes. The manifest, which names the program, is left out.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "base/file.h"
#include "base/hash.h"
#include "checkpoint/checkpoint_case.h"
#include "checkpoint/convert.h"
#include "checkpoint/megatron/foreign_case.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

const fs::path& root() {
  static const fs::path path = std::getenv("BLOOMERY_ROOT");
  return path;
}

// One line for each file, by name.
std::string files_and_hashes(const fs::path& folder) {
  std::vector<std::string> lines;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const bool is_manifest = entry.path().filename() == "manifest.json";
    if (entry.is_regular_file() && !is_manifest) {
      lines.push_back(concat("  ", fs::relative(entry.path(), folder).string(), " ",
                             hash_text(xxh3(read_file(entry.path()))), "\n"));
    }
  }
  std::ranges::sort(lines);
  std::string all;
  for (const std::string& line : lines) {
    all += line;
  }
  return all;
}

class ConvertedFiles : public ::testing::Test {
 protected:
  // "SOURCE to FORM HASH"; or, of a form that the model does not have, "refused".
  void convert(const std::string& source, const std::string& form, ConvertOptions options) {
    options.output = folder_.path() / concat("output_", count_++);
    const std::string name = concat(source, " to ", form);
    std::string files;
    try {
      convert_model(stream_, options, Log(0, 1, LogLevel::error));
      files = files_and_hashes(options.output);
      fs::remove_all(options.output);
    } catch (const Error&) {
      EXPECT_FALSE(fs::exists(options.output)) << name;
    }
    files_[name] = files;
    result_ += concat(name, " ", files.empty() ? "refused" : hash_text(xxh3(files)), "\n");
  }

  void convert_to_all(const std::string& name, const fs::path& input) {
    convert(name, "native", {.input = input, .to = ModelForm::native});
    convert(name, "hf", {.input = input, .to = ModelForm::hf});
    convert(name, "hf shards",
            {.input = input, .to = ModelForm::hf, .max_shard_bytes = 3000, .dtype = DType::bf16});
    convert(name, "exact weights", {.input = input, .to = ModelForm::exact_weights});
    convert(name, "exact weights shards",
            {.input = input,
             .to = ModelForm::exact_weights,
             .max_shard_bytes = 3000,
             .safetensors = true});
    convert(name, "megatron release",
            {.input = input, .to = ModelForm::megatron, .weights_only = true});
    for (const ForeignLayout layout : {ForeignLayout{1, 1, 1}, {2, 1, 1}, {2, 2, 1}, {2, 1, 2}}) {
      const std::string ranks =
          concat(" t", layout.tensor, " p", layout.pipeline, " e", layout.expert);
      for (const auto& [word, form] : {std::pair("megatron", ModelForm::megatron),
                                       std::pair("deepspeed", ModelForm::deepspeed),
                                       std::pair("universal", ModelForm::universal)}) {
        convert(name, word + ranks, {.input = input, .to = form, .layout = layout});
      }
    }
  }

  void compare() {
    const fs::path path = root() / "tests/golden/converted.txt";
    if (std::getenv("BLOOMERY_WRITE_GOLDEN") != nullptr) {
      write_file(path, result_);
    }
    std::istringstream expected(read_file(path)), found(result_);
    for (std::string want, line; std::getline(expected, want);) {
      ASSERT_TRUE(std::getline(found, line)) << "missing: " << want;
      EXPECT_EQ(line, want) << files_[line.substr(0, line.rfind(' '))];
    }
    std::string more;
    EXPECT_FALSE(std::getline(found, more)) << more;
  }

  TestFolder folder_;
  Device device_{{.num_threads = 2}};
  Stream stream_{device_};

 private:
  int count_ = 0;
  std::string result_;
  std::map<std::string, std::string> files_;
};

TEST_F(ConvertedFiles, HaveTheKnownBytes) {
  for (const char* name : {"safetensors_sharded", "bin_sharded"}) {
    convert_to_all(name, root() / "tests/golden/hf" / name);
  }
  for (const char* name : {"mega_fp16_t2p1", "mega_llama_t2p1", "mega_bert_t2p2", "mega_t5_t2p2",
                           "ds_bf16_t2p2z1", "ds_moe_e2d2z1", "ds_moe_p2e2z1"}) {
    convert_to_all(name, unpack_foreign(name, folder_.path()));
  }
  compare();
}

}  // namespace
}  // namespace bloomery
