// bloomery_hf_export INPUT OUTPUT SHARD_BYTES: reads a Hugging Face folder and writes another of
// the same model. INPUT/tokens.safetensors holds what a batch has, [sequences, length] or
// [sequences], under the names of Batch; logits, losses and gradients that we compute of them in
// fp32 go to OUTPUT/computed.safetensors. For tests/long/hf.py.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "autograd/metrics.h"
#include "checkpoint/hf/hf_model.h"
#include "tensor/safetensors.h"
#include "train/step/rank.h"

namespace bloomery {
namespace {

void load(Parameter& parameter, const Tensor& tensor) {
  check(parameter.box.global == tensor.shape(), parameter.name, " has another shape");
  dispatch_floating(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (std::int64_t i = 0; i < tensor.numel(); ++i) {
      static_cast<float*>(parameter.value.data())[i] =
          static_cast<float>(static_cast<const T*>(tensor.data())[i]);
    }
  });
}

HostBatch host_batch(Stream& stream, const SafetensorsFile& input) {
  SampleFields fields;
  for (const char* name : {"tokens", "labels", "token_types", "key_end", "is_random", "loss_mask",
                           "encoder.tokens", "encoder.key_end", "encoder_key_end"}) {
    if (input.contains(name)) {
      const auto& entry = input.entry(name);
      fields.push_back(
          {name, *entry.dtype, entry.shape.rank() == 2 ? Shape{entry.shape[1]} : Shape()});
    }
  }
  HostBatch batch(DeviceKind::cpu, fields, input.entry("tokens").shape[0]);
  for (const SampleField& field : fields) {
    const Tensor tensor = input.read(stream, std::string(field.name));
    if (field.dtype == DType::fp32) {
      batch.set(field.name, tensor.to_host<float>(stream));
    } else {
      batch.set(field.name, tensor.to_host<std::int32_t>(stream));
    }
  }
  std::ranges::fill(batch.samples(), 0);
  return batch;
}

using Named = std::vector<std::pair<std::string, Tensor>>;

// Without the padding of the vocabulary; and those of segments, of a model that has them.
void add_logits(Stream& stream, Rank& rank, const HostBatch& host, Named& results) {
  Batch batch = rank.upload(host);
  batch.labels = {};
  Context context = rank.context(batch, nullptr);
  Metrics metrics;
  context.metrics = &metrics;
  const Value value = rank.model().forward(context).stream;
  const std::vector<float> padded = value.data.to_host<float>(rank.stream());
  const std::int64_t columns = value.shape().back(), real = rank.model().options().vocabulary.size;
  std::vector<float> kept;
  for (std::int64_t row = 0; row < batch.num_tokens(); ++row) {
    const auto begin = padded.begin() + row * columns;
    kept.insert(kept.end(), begin, begin + real);
  }
  results.emplace_back("logits",
                       Tensor::from_host(stream, kept, {batch.num_sequences, batch.length, real}));
  if (metrics.segment_logits) {
    results.emplace_back("segment_logits",
                         Tensor::from_host(stream, metrics.segment_logits.to_host<float>(stream),
                                           metrics.segment_logits.shape()));
  }
}

// Of all weights, by their names and in their layout.
void add_gradients(Stream& stream, Rank& rank, Named& results) {
  const HuggingFace& form = hf_form(rank.model().options());
  const std::vector<TensorMap> maps = expand(form.tensors, rank.model().options());
  for (const Parameter* parameter : rank.model().parameters()) {
    std::vector<float> numbers = parameter->grad.to_host<float>(rank.stream());
    numbers.resize(static_cast<std::size_t>(parameter->box.global.numel()));  // without padding
    const Tensor ours = Tensor::from_host(stream, numbers, parameter->box.global);
    const auto map = std::ranges::find(maps, parameter->name, &TensorMap::ours);
    const std::vector<Tensor> parts = to_theirs(stream, *map, ours);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::string& name = map->parts[i].theirs;
      results.emplace_back(concat("grad.", name == form.output ? "" : form.prefix, name), parts[i]);
    }
  }
}

Named compute(Stream& stream, const HfModel& model, const SafetensorsFile& input) {
  RankOptions options{.model = model.options, .device = {.num_threads = 2}, .training = false};
  Rank rank(options);
  for (Parameter* parameter : rank.model().parameters()) {
    load(*parameter, model.tensors.at(parameter->name));
  }
  const HostBatch batch = host_batch(stream, input);
  Named results;
  add_logits(stream, rank, batch, results);
  std::vector<double> losses;
  for (const auto& loss : rank.evaluate({1, [&](std::int64_t) { return rank.upload(batch); }})) {
    losses.push_back(loss.value);
  }
  results.emplace_back("losses", Tensor::from_host(stream, losses, {std::ssize(losses)}));
  rank.accumulate(std::span(&batch, 1));
  add_gradients(stream, rank, results);
  return results;
}

}  // namespace
}  // namespace bloomery

int main(int count, char** arguments) {
  using namespace bloomery;
  try {
    check(count == 4, "usage: bloomery_hf_export INPUT OUTPUT SHARD_BYTES");
    const std::filesystem::path input = arguments[1], output = arguments[2];
    Device device({.num_threads = 1});
    Stream stream(device);
    const HfModel model = read_hf(stream, input);
    write_hf(*open_model(stream, input, Log()), output,
             {.tokens = model.tokens, .max_shard_bytes = std::stoull(arguments[3])});
    const SafetensorsFile tokens(input / "tokens.safetensors");
    write_safetensors(output / "computed.safetensors", stream, compute(stream, model, tokens));
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  return 0;
}
