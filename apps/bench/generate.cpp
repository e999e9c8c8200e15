// `bloomery bench generate`: how fast a model with random weights generates, beside the time that
// memory takes to give each step its weights, keys and values once.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <iomanip>

#include "apps/bench/bench.h"
#include "apps/bench/models.h"
#include "apps/bench/rows.h"
#include "apps/common/command_line.h"
#include "apps/common/device_choice.h"
#include "generate/batch_sampler.h"
#include "models/linear_weights.h"
#include "ops/quantized/quantized_weights.h"

namespace bloomery {
namespace {

struct BenchGenerateOptions {
  std::string size = "124M";
  DeviceChoice device;
  DType dtype = DType::bf16;
  QuantizedFormat quantized = QuantizedFormat::none;
  std::int64_t batch = 1, prompt_length = 64, new_tokens = 256;
  SamplingOptions sampling;
  int rounds = 3;
};

void describe(OptionTable& t, BenchGenerateOptions& o) {
  t.section("model");
  t.add_choice("size", o.size, "Model to measure.", bench_model_names());
  t.add("dtype", o.dtype, "Data type of parameters and activations.",
        {{"fp32", DType::fp32}, {"bf16", DType::bf16}, {"fp16", DType::fp16}});
  t.add("quantize", o.quantized, "Weight-only quantization of linear layers.",
        {{"none", QuantizedFormat::none},
         {"int8", QuantizedFormat::int8},
         {"fp8", QuantizedFormat::fp8},
         {"nf4", QuantizedFormat::nf4}});
  t.section("texts");
  t.add("batch-size", o.batch, "Sequences.", between(1, 65536));
  t.add("prompt-length", o.prompt_length, "Tokens per prompt.", between(1, 1 << 20));
  t.add("out-seq-length", o.new_tokens, "New tokens per sequence.", between(2, 1 << 20));
  t.add("greedy", o.sampling.greedy, "Use greedy decoding.");
  t.add("temperature", o.sampling.temperature, "Sampling temperature.", at_least(0));
  t.add("top-k", o.sampling.top_k, "Sample from the k likeliest tokens; 0: all.", at_least(0));
  t.add("top-p", o.sampling.top_p,
        "Nucleus sampling: the likeliest tokens whose probabilities sum to p.", between(0, 1));
  t.add("repetition-penalty", o.sampling.repetition_penalty, "Repetition penalty; 1: none.",
        above(0));
  t.section("run");
  describe(t, o.device);
  t.add("rounds", o.rounds, "Timed rounds after one warm-up; the median counts.", at_least(1));
}

// Weights that give logits a deviation of about 3, as trained models do. Those of products repeat
// themselves, which is quicker to make; logits must not.
void fill_weights(const Model& model, Stream& stream) {
  const double scale = 3 / std::sqrt(static_cast<double>(model.options().hidden_size));
  for (Parameter* parameter : model.parameters()) {
    if (parameter->name.starts_with("blocks.") && parameter->local_shape.rank() > 1) {
      parameter->value =
          BenchSetup(stream, model.dtype()).in(parameter->local_shape, static_cast<float>(scale));
      continue;
    }
    if (parameter->local_shape.rank() > 1) {
      parameter->init = {Init::Kind::normal, scale};
    }
    parameter->value = Tensor::empty(stream, model.dtype(), parameter->local_shape);
    initialize(*parameter, 1, stream);
  }
}

// Codes take the place of the values of the weights that have them.
void quantize_weights(QuantizedWeights& quantized) {
  for (Parameter* weight : quantized.weights()) {
    quantized.put_rows(*weight, 0, weight->value);
    weight->value = {};
  }
}

// Bytes that a step must read: all weights but tables of which it takes rows, and the keys and
// values of the mean context.
double step_bytes(const Model& model, const QuantizedWeights* quantized,
                  const BenchGenerateOptions& o) {
  const ModelOptions& options = model.options();
  const auto size = static_cast<double>(size_of(model.dtype()));
  double numbers = 0;
  for (const Parameter* parameter : model.parameters()) {
    const bool table = parameter->name.starts_with("embedding.") &&
                       (options.vocabulary.untied || parameter->uses == 1);
    numbers += table || !parameter->value ? 0 : static_cast<double>(parameter->value.numel());
  }
  const double context =
      static_cast<double>(o.prompt_length) + static_cast<double>(o.new_tokens) / 2;
  numbers += static_cast<double>(o.batch) * context * static_cast<double>(options.num_layers) * 2 *
             static_cast<double>(options.attention.num_groups * options.attention.head_dim);
  return numbers * size + (quantized != nullptr ? static_cast<double>(quantized->bytes()) : 0);
}

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Times {
  double first = 0;  // to the first token
  double whole = 0;  // to the last
  double step = 0;   // the median

  double decode(std::int64_t new_tokens) const {
    return (whole - first) / static_cast<double>(new_tokens - 1);
  }
};

Times generate_once(const Model& model, Stream& stream, Mesh& mesh, const BenchGenerateOptions& o) {
  std::vector<std::vector<TokenId>> prompts;
  std::vector<BatchSampler::Sequence> sequences;
  const RandomKey key = random_key(1, "prompts");
  for (std::int64_t i = 0; i < o.batch; ++i) {
    std::vector<TokenId>& prompt = prompts.emplace_back();
    for (std::int64_t t = 0; t < o.prompt_length; ++t) {
      prompt.push_back(static_cast<TokenId>(
          random_uniform(key, static_cast<std::uint64_t>(i * o.prompt_length + t)) *
          static_cast<double>(model.options().vocabulary.size)));
    }
  }
  for (std::int64_t i = 0; i < o.batch; ++i) {
    sequences.push_back({.number = sequences.size(),
                         .sampling = o.sampling,
                         .key = draw_key(o.sampling.seed, i, 0),
                         .tokens = prompts[static_cast<std::size_t>(i)],
                         .room = o.new_tokens});
  }
  const auto start = Clock::now();
  Decoder decoder(model, stream, mesh,
                  {.num_sequences = o.batch, .capacity = o.prompt_length + o.new_tokens - 1});
  decoder.feed(prompts);
  BatchSampler tokens(decoder, {}, o.batch);
  tokens.add_fed(sequences);
  tokens.next();
  Times times{.first = seconds_since(start)};
  std::vector<double> steps;
  for (std::int64_t i = 1; i < o.new_tokens; ++i) {
    const auto begin = Clock::now();
    tokens.next();
    steps.push_back(seconds_since(begin));
  }
  times.whole = seconds_since(start);
  std::ranges::nth_element(steps, steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2));
  times.step = steps[steps.size() / 2];
  return times;
}

double copy_bandwidth(Stream& stream) {
  constexpr int kRuns = 20;
  BenchSetup setup(stream, DType::fp32);
  const std::function<void()> copy = copy_ceiling(stream.on_cuda() ? 1024 : 256).make(setup);
  copy();
  Event start(stream.device()), end(stream.device());
  start.record(stream);
  for (int i = 0; i < kRuns; ++i) {
    copy();
  }
  end.record(stream);
  end.synchronize();
  return setup.bytes * kRuns / end.seconds_since(start);
}

std::string sampling_text(const SamplingOptions& o) {
  return o.is_greedy() ? "greedy"
                       : concat("temperature ", o.temperature, ", top-k ", o.top_k, ", top-p ",
                                o.top_p, o.repetition_penalty == 1 ? "" : ", repetition penalty");
}

}  // namespace

int bench_generate(const Arguments& arguments, std::ostream& out) {
  BenchGenerateOptions o;
  OptionTable table;
  describe(table, o);
  if (!read_options(table, arguments, out,
                    "usage: bloomery bench generate [OPTIONS]\n\nMeasures tokens per second of "
                    "generation.\n\nexample:\n  bloomery bench generate --size 124M\n")) {
    return 0;
  }
  ModelOptions options = bench_model(o.size).options;
  options.positions.max_length = o.prompt_length + o.new_tokens;
  Device device(o.device.options());
  Stream stream(device);
  Mesh mesh = Mesh::single();
  const Model model(options, mesh, o.dtype);
  fill_weights(model, stream);
  std::unique_ptr<QuantizedWeights> quantized;
  if (o.quantized != QuantizedFormat::none) {
    quantized =
        std::make_unique<QuantizedWeights>(stream, o.quantized, o.dtype, linear_weights(model));
    quantize_weights(*quantized);
  }
  const double bandwidth = copy_bandwidth(stream);
  stream.memory()->trim();
  generate_once(model, stream, mesh, o);
  std::vector<Times> rounds;
  for (int i = 0; i < o.rounds; ++i) {
    rounds.push_back(generate_once(model, stream, mesh, o));
  }
  std::ranges::sort(rounds, {}, &Times::whole);
  const Times times = rounds[rounds.size() / 2];
  const double bound = step_bytes(model, quantized.get(), o) / bandwidth,
               step = times.decode(o.new_tokens);
  const auto batch = static_cast<double>(o.batch), count = static_cast<double>(o.new_tokens);
  out << "bloomery " << device.description() << ' ' << o.size << ' ' << o.dtype
      << (quantized ? concat(" with ", o.quantized, " weights") : "") << ", batch " << o.batch
      << ", " << o.prompt_length << " + " << o.new_tokens << " tokens, "
      << sampling_text(o.sampling) << ": " << std::fixed << std::setprecision(0) << batch / step
      << " tokens/s, " << std::setprecision(4) << step * 1e3 << " ms/token (median step "
      << times.step * 1e3 << "), " << std::setprecision(1) << bound / step * 100
      << " % of the bandwidth bound (" << std::setprecision(4) << bound * 1e3 << " ms at "
      << std::setprecision(2) << bandwidth * 1e-12 << " TB/s), first token after "
      << times.first * 1e3 << " ms, with it " << std::setprecision(0) << batch * count / times.whole
      << " tokens/s" << std::endl;
  return 0;
}

}  // namespace bloomery
