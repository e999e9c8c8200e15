// bloomery_hf_export INPUT OUTPUT SHARD_BYTES: reads a Hugging Face folder and writes another of
// the same model. INPUT/tokens.safetensors holds `tokens` and `labels` [sequences, length]; logits,
// loss and gradients that we compute of them in fp32 go to OUTPUT/computed.safetensors. For
// tests/long/hf.py.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "checkpoint/hf/hf_model.h"
#include "data/samples/language_model_dataset.h"
#include "tensor/safetensors.h"
#include "train/rank.h"

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
  const Shape shape = input.entry("tokens").shape;
  HostBatch batch(DeviceKind::cpu, language_model_fields(shape[1], {}), shape[0]);
  for (const char* name : {"tokens", "labels"}) {
    batch.set(name, input.read(stream, name).to_host<std::int32_t>(stream));
  }
  std::ranges::fill(batch.samples(), 0);
  return batch;
}

using Named = std::vector<std::pair<std::string, Tensor>>;

// Without the padding of the vocabulary.
Tensor logits(Stream& stream, Rank& rank, const HostBatch& host) {
  Batch batch = upload(host, rank.stream());
  batch.labels = {};
  Context context = rank.context(batch, nullptr);
  const Value value = rank.model().forward(context).stream;
  const std::vector<float> padded = value.data.to_host<float>(rank.stream());
  const std::int64_t columns = value.shape().back(), real = rank.model().options().vocabulary.size;
  std::vector<float> kept;
  for (std::int64_t row = 0; row < batch.num_tokens(); ++row) {
    const auto begin = padded.begin() + row * columns;
    kept.insert(kept.end(), begin, begin + real);
  }
  return Tensor::from_host(stream, kept, {batch.num_sequences, batch.length, real});
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
  Named results = {{"logits", logits(stream, rank, batch)}};
  const std::vector<double> loss = {rank.accumulate(std::span(&batch, 1))};
  results.emplace_back("loss", Tensor::from_host(stream, loss, {1}));
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
    write_hf(stream, output, model.options, model.tensors,
             {.tokens = model.tokens, .max_shard_bytes = std::stoull(arguments[3])});
    const SafetensorsFile tokens(input / "tokens.safetensors");
    write_safetensors(output / "computed.safetensors", stream, compute(stream, model, tokens));
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  return 0;
}
