#include "ops/attention/attention_cuda_case_test.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>

#include "build_config.h"
#include "ops/attention/attention_backends.h"

namespace bloomery::testing {
namespace {

template <class T>
T rounded(double x) {
  if constexpr (std::is_same_v<T, double>) {
    return x;
  } else {
    return T(static_cast<float>(x));
  }
}

double as_double(double x) { return x; }
template <class T>
double as_double(T x) {
  return static_cast<float>(x);
}

// `count` normal numbers from the stream `purpose`, rounded to `rounded_to`, stored as `dtype`.
Tensor draw(Stream& stream, const std::string& purpose, std::int64_t count, DType rounded_to,
            DType dtype) {
  const RandomKey key = random_key(1, purpose);
  return dispatch_floating(rounded_to, [&](auto from) {
    return dispatch_floating(dtype, [&](auto to) {
      using From = typename decltype(from)::type;
      using To = typename decltype(to)::type;
      std::vector<To> values(static_cast<std::size_t>(count));
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = rounded<To>(as_double(rounded<From>(random_normal(key, i))));
      }
      return Tensor::from_host(stream, values, {count});
    });
  });
}

std::vector<double> download(Stream& stream, const Tensor& tensor) {
  return dispatch_floating(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<double> values;
    for (const T x : tensor.to_host<T>(stream)) {
      values.push_back(as_double(x));
    }
    return values;
  });
}

struct Ranges {
  std::vector<std::int32_t> begin, end;  // of one sequence
};
Ranges ranges_of(const AttentionCase& c) {
  Ranges ranges;
  const auto keys = static_cast<std::int32_t>(c.key_length);
  for (std::int64_t q = 0; q < c.query_length; ++q) {
    std::int32_t begin = 0, end = keys;
    if (c.ranges == KeyRanges::documents) {
      constexpr std::int32_t kDocument = 37;
      begin = std::min(static_cast<std::int32_t>(q) / kDocument * kDocument, keys);
      end = std::min(begin + kDocument, keys);
    } else if (c.ranges == KeyRanges::padding) {
      end = keys - keys / 3;
      begin = q < c.query_length * 3 / 4 ? 0 : end;
    } else {  // thirds: the first keys, none, the last keys
      const std::int64_t third = 3 * q / c.query_length;
      begin = third == 0 ? 0 : keys / 2;
      end = third == 2 ? keys : keys / 2;
    }
    ranges.begin.push_back(begin);
    ranges.end.push_back(end);
  }
  return ranges;
}

template <class T>
Tensor repeated(Stream& stream, const std::vector<T>& values, std::int64_t times) {
  std::vector<T> all;
  for (std::int64_t i = 0; i < times; ++i) {
    all.insert(all.end(), values.begin(), values.end());
  }
  const auto count = static_cast<std::int64_t>(all.size());
  return Tensor::from_host(stream, all, {count});
}

// The buffers of one problem and the views of Q, K, V into them.
struct Buffers {
  AttentionProblem problem;
  Tensor qkv, q;  // without cross attention Q is in `qkv`
  Tensor grad_qkv, grad_q;
  Tensor out, lse, grad_out;
  Tensor key_begin, key_end, samples, places;
  Tensor bias, grad_bias;
  HeadView views[6];  // Q, K, V and their gradients

  AttentionForward forward() const {
    return {
        .problem = problem, .q = views[0], .k = views[1], .v = views[2], .out = out, .lse = lse};
  }
  AttentionBackward backward() const {
    return {.problem = problem,
            .q = views[0],
            .k = views[1],
            .v = views[2],
            .out = out,
            .lse = lse,
            .grad_out = grad_out,
            .grad_q = views[3],
            .grad_k = views[4],
            .grad_v = views[5],
            .grad_bias = grad_bias};
  }
};

HeadView head_view(const Tensor& buffer, std::int64_t num_groups, std::int64_t heads_in_group,
                   std::int64_t first_head, std::int64_t head_dim) {
  const std::int64_t group_stride = heads_in_group * head_dim;
  auto* bytes = static_cast<unsigned char*>(buffer.data());
  return {.data = bytes + static_cast<std::size_t>(first_head * head_dim) * size_of(buffer.dtype()),
          .token_stride = num_groups * group_stride,
          .group_stride = group_stride};
}

void set_views(Buffers& b, const AttentionCase& c) {
  const std::int64_t per_group = c.num_heads / c.num_groups;
  const auto set = [&](HeadView* views, const Tensor& qkv, const Tensor& q) {
    const std::int64_t heads = c.cross ? 2 : per_group + 2;  // of a group in the fused buffer
    views[0] = c.cross ? head_view(q, c.num_groups, per_group, 0, c.head_dim)
                       : head_view(qkv, c.num_groups, heads, 0, c.head_dim);
    views[1] = head_view(qkv, c.num_groups, heads, heads - 2, c.head_dim);
    views[2] = head_view(qkv, c.num_groups, heads, heads - 1, c.head_dim);
  };
  set(b.views, b.qkv, b.q);
  set(b.views + 3, b.grad_qkv, b.grad_q);
}

void set_problem(Buffers& b, const AttentionCase& c, Stream& stream, DType dtype) {
  b.problem = {.dtype = dtype,
               .num_sequences = c.num_sequences,
               .query_length = c.query_length,
               .key_length = c.key_length,
               .num_heads = c.num_heads,
               .num_groups = c.num_groups,
               .head_dim = c.head_dim,
               .scale = 1.0f / std::sqrt(static_cast<float>(c.head_dim)),
               .causal = c.causal,
               .window = c.window};
  if (c.bias_reach > 0) {
    const DType real = accumulation_dtype(dtype);
    const Shape shape{c.num_heads, 2 * c.bias_reach + 1};
    // As large as the products of queries and keys that it is added to.
    b.bias = draw(stream, "bias", shape.numel(), DType::bf16, real).reshape(shape);
    b.grad_bias = Tensor::empty(stream, real, shape);
    b.problem.bias = b.bias.data();
    b.problem.bias_reach = c.bias_reach;
  }
  if (c.ranges != KeyRanges::none) {
    const Ranges ranges = ranges_of(c);
    b.key_begin = repeated(stream, ranges.begin, c.num_sequences);
    b.key_end = repeated(stream, ranges.end, c.num_sequences);
    b.problem.key_begin = static_cast<const std::int32_t*>(b.key_begin.data());
    b.problem.key_end = static_cast<const std::int32_t*>(b.key_end.data());
  }
  if (c.dropout > 0) {
    std::vector<std::int64_t> samples;
    for (std::int64_t s = 0; s < c.num_sequences; ++s) {
      samples.push_back((std::int64_t{1} << 33) + 11 * s);
    }
    std::vector<std::int32_t> places;
    for (std::int64_t q = 0; q < c.query_length; ++q) {
      places.push_back(static_cast<std::int32_t>(1000 + 2 * q));
    }
    b.samples = repeated(stream, samples, 1);
    b.places = repeated(stream, places, 1);
    b.problem.dropout_threshold = dropout_threshold(c.dropout);
    b.problem.dropout_key = random_key(9, "attention dropout");
    b.problem.places = {static_cast<const std::int64_t*>(b.samples.data()),
                        static_cast<const std::int32_t*>(b.places.data()), c.query_length};
    b.problem.first_head = 2;
  }
}

// Buffers without contents, except for the integers.
Buffers make_buffers(const AttentionCase& c, Stream& stream, DType dtype) {
  Buffers b;
  set_problem(b, c, stream, dtype);
  const std::int64_t queries = c.num_sequences * c.query_length;
  const std::int64_t q_count = queries * c.num_heads * c.head_dim;
  const std::int64_t kv_count = 2 * c.num_sequences * c.key_length * c.num_groups * c.head_dim;
  const std::int64_t qkv_count = c.cross ? kv_count : kv_count + q_count;
  b.qkv = Tensor::empty(stream, dtype, {qkv_count});
  b.grad_qkv = Tensor::empty(stream, dtype, {qkv_count});
  if (c.cross) {
    b.q = Tensor::empty(stream, dtype, {q_count});
    b.grad_q = Tensor::empty(stream, dtype, {q_count});
  }
  b.out = Tensor::empty(stream, dtype, {queries, c.num_heads * c.head_dim});
  b.grad_out = Tensor::empty(stream, dtype, {queries, c.num_heads * c.head_dim});
  b.lse = Tensor::empty(stream, accumulation_dtype(dtype),
                        {c.num_sequences, c.num_heads, c.query_length});
  set_views(b, c);
  return b;
}

// Fills a tensor with numbers that repeat, quickly.
void fill(Stream& stream, const Tensor& tensor, const Tensor& pattern) {
  auto* bytes = static_cast<unsigned char*>(tensor.data());
  for (std::size_t at = 0; at < tensor.bytes(); at += pattern.bytes()) {
    stream.copy(bytes + at, pattern.data(), std::min(pattern.bytes(), tensor.bytes() - at));
  }
}

// Median time of one launch in seconds.
template <class Work>
double median_seconds(Stream& stream, const Work& work) {
  constexpr int kWarmUps = 3, kRepeats = 15;
  std::vector<double> seconds;
  for (int i = 0; i < kWarmUps + kRepeats; ++i) {
    Event start(stream.device()), stop(stream.device());
    start.record(stream);
    work();
    stop.record(stream);
    stop.synchronize();
    if (i >= kWarmUps) {
      seconds.push_back(stop.seconds_since(start));
    }
  }
  std::ranges::nth_element(seconds, seconds.begin() + kRepeats / 2);
  return seconds[kRepeats / 2];
}

void print_rates(const AttentionCase& c, AttentionBackend backend, const char* label) {
  Device device({.kind = DeviceKind::cuda});
  Stream stream(device);
  device.service<AttentionSettings>().backend = backend;
  device.service<AttentionSettings>().max_workspace_bytes = std::int64_t{32} << 30;
  const Buffers b = make_buffers(c, stream, DType::bf16);
  const Tensor pattern = draw(stream, "pattern", (1 << 20) + 7, DType::bf16, DType::bf16);
  fill(stream, b.qkv, pattern);
  fill(stream, b.grad_out, pattern);
  const double forward = median_seconds(stream, [&] { launch(stream, b.forward()); });
  const double backward = median_seconds(stream, [&] { launch(stream, b.backward()); });
  const double products = 4.0 * static_cast<double>(c.num_sequences * c.num_heads) *
                          static_cast<double>(c.query_length * c.key_length * c.head_dim) *
                          (c.causal ? 0.5 : 1.0);
  std::cout << std::setw(8) << label << "  " << name(c) << std::fixed << std::setprecision(0)
            << "  forward " << products / forward * 1e-12 << "  backward "
            << 2.5 * products / backward * 1e-12 << " TFLOP/s  (" << std::setprecision(3)
            << forward * 1e3 << " and " << backward * 1e3 << " ms)\n";
}

}  // namespace

std::string name(const AttentionCase& c) {
  constexpr const char* kRanges[] = {"", "_documents", "_padding", "_empty_middle"};
  return concat("sequences", c.num_sequences, "_queries", c.query_length, "_keys", c.key_length,
                "_heads", c.num_heads, "_groups", c.num_groups, "_dim", c.head_dim,
                c.cross ? "_cross" : "", c.causal ? "_causal" : "",
                kRanges[static_cast<int>(c.ranges)],
                c.dropout > 0 ? concat("_dropout", static_cast<int>(c.dropout * 100)) : "",
                c.window > 0 ? concat("_window", c.window) : "",
                c.bias_reach > 0 ? concat("_bias", c.bias_reach) : "");
}

Results run_attention(const AttentionCase& c, const AttentionRun& run) {
  Device device({.kind = run.device, .num_threads = 2, .poison = true});
  Stream stream(device);
  auto& settings = device.service<AttentionSettings>();
  Buffers b = make_buffers(c, stream, run.dtype);
  const auto contents = [&](const char* purpose, Tensor& tensor) {
    tensor =
        draw(stream, purpose, tensor.numel(), run.rounded_to, run.dtype).reshape(tensor.shape());
  };
  contents("qkv", b.qkv);
  contents("grad_out", b.grad_out);
  if (c.cross) {
    contents("q", b.q);
  }
  set_views(b, c);
  settings.only_sm80 = run.only_sm80;
  settings.backend = run.forward;
  launch(stream, b.forward());
  settings.backend = run.backward;
  launch(stream, b.backward());
  Results results{{"out", download(stream, b.out)},
                  {"lse", download(stream, b.lse)},
                  {"grad_qkv", download(stream, b.grad_qkv)}};
  if (c.cross) {
    results["grad_q"] = download(stream, b.grad_q);
  }
  if (c.bias_reach > 0) {
    results["grad_bias"] = download(stream, b.grad_bias);
  }
  return results;
}

bool attention_cudnn_available() {
  if constexpr (build::cuda) {
    return attention_cuda::cudnn_available();
  }
  return false;
}

void print_attention_rates() {
  struct Size {
    std::int64_t sequences, heads, length, head_dim;
  };
  for (const Size& s : {Size{64, 12, 1024, 64}, Size{32, 16, 1024, 64}, Size{8, 24, 2048, 96},
                        Size{4, 32, 2048, 96}, Size{16, 16, 2048, 128}, Size{4, 32, 8192, 128}}) {
    AttentionCase c{.num_sequences = s.sequences,
                    .query_length = s.length,
                    .key_length = s.length,
                    .num_heads = s.heads,
                    .num_groups = s.heads,
                    .head_dim = s.head_dim};
    if (attention_cudnn_available()) {
      print_rates(c, AttentionBackend::cudnn, "cuDNN");
    }
    print_rates(c, AttentionBackend::flash, "flash");
    c.dropout = 0.1f;
    print_rates(c, AttentionBackend::flash, "flash");
    c.bias_reach = 128;
    print_rates(c, AttentionBackend::flash, "flash");
    c.dropout = 0;
    print_rates(c, AttentionBackend::flash, "flash");
    c.bias_reach = 0;
    c.window = s.length / 4;
    if (attention_cudnn_available()) {
      print_rates(c, AttentionBackend::cudnn, "cuDNN");
    }
    print_rates(c, AttentionBackend::flash, "flash");
  }
}

}  // namespace bloomery::testing
