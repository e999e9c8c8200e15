// The state of every optimizer goes to Megatron's and DeepSpeed's files and back.
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "checkpoint/convert.h"
#include "checkpoint/folder.h"
#include "checkpoint/model_source_case.h"
#include "checkpoint/reader.h"
#include "checkpoint/timeline.h"
#include "optim/optimizer_choice.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

class ConvertedState : public ::testing::Test {
 protected:
  CheckpointReader open(const fs::path& path) const {
    return *find_newest(path, nullptr, Log(0, 1, LogLevel::error));
  }

  // Of all tensors but padding, by name.
  static std::map<std::string, std::vector<std::byte>> contents(const CheckpointReader& reader) {
    std::map<std::string, std::vector<std::byte>> all;
    for (const std::string& name : reader.names()) {
      if (name.find("/padding") == std::string::npos) {
        const ManifestTensor& tensor = reader.tensor(name);
        all[name].resize(tensor.bytes());
        reader.read(name, Box::whole(tensor.shape), all[name]);
      }
    }
    return all;
  }

  TemporaryFolder folder_;
  Device device_{{.num_threads = 1}};
  Stream stream_{device_};
};

TEST_F(ConvertedState, IsTheSameOfEveryOptimizer) {
  ModelRecord record{.model = small_gpt(), .tokenizer = {}, .dtype = DType::fp32, .notes = {}};
  const auto weights = random_weights(stream_, record.model, DType::fp32);
  for (const auto& [word, rule] : optimizer_words()) {
    const fs::path source = folder_.path() / word;
    save_checkpoint(source, 5, record, weights, word, rule);
    const auto before = contents(open(source));
    EXPECT_EQ(before.size(), weights.size() * (1 + state_of(rule).size()));
    for (const ModelForm form : {ModelForm::megatron, ModelForm::deepspeed, ModelForm::universal}) {
      const fs::path output = folder_.path() / concat(word, '-', static_cast<int>(form));
      convert_model(stream_, {.input = source, .output = output, .to = form, .layout = {2, 1}},
                    Log(0, 1, LogLevel::error));
      EXPECT_TRUE(contents(open(output)) == before) << word << ", form " << static_cast<int>(form);
    }
  }
}

TEST_F(ConvertedState, HasTheirNames) {
  const auto weights = random_weights(stream_, small_gpt(), DType::fp32);
  ModelRecord record{.model = small_gpt(), .tokenizer = {}, .dtype = DType::fp32, .notes = {}};
  save_checkpoint(folder_.path() / "sgd", 5, record, weights, "sgd", Momentum{});
  const fs::path output = folder_.path() / "universal";
  convert_model(stream_,
                {.input = folder_.path() / "sgd", .output = output, .to = ModelForm::universal},
                Log(0, 1, LogLevel::error));
  int found = 0;
  for (const auto& file : fs::recursive_directory_iterator(output)) {
    EXPECT_NE(file.path().filename(), "exp_avg.pt");
    found += file.path().filename() == "momentum_buffer.pt" ? 1 : 0;
  }
  EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace bloomery
