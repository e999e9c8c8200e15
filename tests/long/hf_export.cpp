// bloomery_hf_export INPUT OUTPUT SHARD_BYTES: reads a Hugging Face folder and writes another of
// the same model. INPUT/tokens.safetensors holds `tokens` [sequences, length]; the logits that our
// GPT gives for them in fp32 go to OUTPUT/our_logits.safetensors. For tests/long/hf.py.
#include <cstdio>
#include <cstring>

#include "checkpoint/hf/hf_model.h"
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

Tensor our_logits(Stream& stream, const HfModel& model, const SafetensorsFile& input) {
  RankOptions options{.model = model.options, .device = {.num_threads = 2}, .training = false};
  Rank rank(options);
  for (Parameter* parameter : rank.model().parameters()) {
    load(*parameter, model.tensors.at(parameter->name));
  }
  const Shape shape = input.entry("tokens").shape;
  HostBatch batch{.num_sequences = shape[0], .length = shape[1]};
  batch.tokens = input.read(stream, "tokens").to_host<std::int32_t>(stream);
  batch.labels = batch.tokens;
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    batch.positions.push_back(static_cast<std::int32_t>(i % shape[1]));
  }
  batch.samples.assign(static_cast<std::size_t>(shape[0]), 0);
  const Batch uploaded = batch.upload(rank.stream());
  Context context = rank.context(uploaded, nullptr);
  const Value logits = rank.model().forward(context).stream;
  const std::vector<float> padded = logits.data.to_host<float>(rank.stream());
  const std::int64_t columns = logits.shape().back(), real = model.options.vocabulary.size;
  std::vector<float> kept;
  for (std::int64_t row = 0; row < shape.numel(); ++row) {
    const auto begin = padded.begin() + row * columns;
    kept.insert(kept.end(), begin, begin + real);
  }
  return Tensor::from_host(stream, kept, {shape[0], shape[1], real});
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
    write_safetensors(output / "our_logits.safetensors", stream,
                      {{"logits", our_logits(stream, model, tokens)}});
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  return 0;
}
