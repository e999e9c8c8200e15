#include "train/finetune/reference_values.h"

#include <cmath>
#include <cstring>

#include "base/fields.h"
#include "base/round_up.h"
#include "samples/instruct/instruct_data.h"
#include "tensor/safetensors.h"

namespace bloomery {
namespace {

constexpr std::int64_t kMicroBatchesAtOnce = 64;  // many, so that a pipeline is mostly full
constexpr double kLongSeconds = 24 * 3600;        // ranks may be of unequal speed

std::filesystem::path file_of(const std::filesystem::path& folder) {
  return folder / "dpo_reference.safetensors";
}

// The part of each rank that has some, put together.
std::vector<float> gathered(Rank& rank, const Rank::AnswerLogps& own, std::int64_t num_pairs) {
  FieldWriter bytes;
  bytes.array(std::span<const std::int64_t>(own.answers));
  bytes.array(std::span<const float>(own.logps));
  std::vector<float> all(static_cast<std::size_t>(2 * num_pairs), std::nanf(""));
  for (const std::string& message :
       rank.mesh().host().gather("reference values", bytes.take(), kLongSeconds)) {
    FieldReader fields(message);
    const std::vector<std::int64_t> answers = fields.array<std::int64_t>();
    const std::vector<float> logps = fields.array<float>();
    for (std::size_t i = 0; i < answers.size(); ++i) {  // the last samples are the first ones again
      all[static_cast<std::size_t>(answers[i] % (2 * num_pairs))] = logps[i];
    }
  }
  for (const float logp : all) {
    check(std::isfinite(logp),
          "the model to start from finds an answer of the pairs impossible, or "
          "its numbers overflow: log-probability ",
          logp);
  }
  return all;
}

}  // namespace

void compute_reference(Rank& rank, const TrainingData& data, Split split, FeedOptions feed) {
  const InstructData& pairs = *data.instructions();
  const std::int64_t block = feed.micro_batch * feed.data_ranks;
  const std::int64_t samples = round_up(pairs.size(split), block);
  feed.consumed_samples = 0;
  DataOptions options = data.options();
  options.dataloader_type = LoaderType::single;
  std::array<std::unique_ptr<Dataset>, 3> sources;
  sources[static_cast<std::size_t>(split)] = pairs.build_in_order(split, samples);
  const TrainingData in_order(options, std::move(sources));
  BatchFeed batches(in_order, split, feed, rank.stream());
  Rank::AnswerLogps own;
  for (std::int64_t left = samples / block; left > 0; left -= kMicroBatchesAtOnce) {
    const Rank::AnswerLogps some =
        rank.answer_logps({.num_micro_batches = std::min(left, kMicroBatchesAtOnce),
                           .batch = [&](std::int64_t) { return batches.next(); }});
    own.answers.insert(own.answers.end(), some.answers.begin(), some.answers.end());
    own.logps.insert(own.logps.end(), some.logps.begin(), some.logps.end());
  }
  pairs.set_reference(split, gathered(rank, own, pairs.size(split)));
}

void write_reference(const std::filesystem::path& folder, const InstructData& pairs) {
  Device host(DeviceOptions{});
  Stream stream(host);
  std::vector<std::pair<std::string, Tensor>> tensors;
  Metadata records;
  for (const Split split : kSplits) {
    if (const std::vector<float>* values = pairs.reference(split); values && !values->empty()) {
      tensors.emplace_back(name(split), Tensor::from_host(stream, *values, {pairs.size(split), 2}));
      records[std::string(name(split))] = pairs.description(split);
    }
  }
  std::filesystem::create_directories(folder);
  write_safetensors(file_of(folder), stream, tensors, records);
}

void read_reference(const std::filesystem::path& folder, const InstructData& pairs) {
  const std::filesystem::path path = file_of(folder);
  check(std::filesystem::exists(path), "there is no ", path.string(),
        ", the reference log-probabilities, which --dpo needs: restore the file, or start over "
        "from the checkpoint with another --save");
  const SafetensorsFile file(path);
  for (const Split split : kSplits) {
    const std::string key(name(split));
    if (pairs.size(split) == 0) {
      continue;
    }
    const auto records = file.metadata().find(key);
    check(file.contains(key) && records != file.metadata().end() &&
              records->second == pairs.description(split),
          path.string(), " is of other ", key,
          " pairs than those of this command (records, template, tokenizer, --seq-length, --split "
          "or --seed): give the command that the run was started with");
    const std::vector<std::byte> bytes = file.bytes(key);
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
    pairs.set_reference(split, std::move(values));
  }
}

}  // namespace bloomery
