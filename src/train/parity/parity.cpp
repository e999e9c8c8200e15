#include "train/parity/parity.h"

#include <algorithm>
#include <cmath>

#include "base/fields.h"
#include "comm/nccl/nccl.h"
#include "comm/threads.h"
#include "models/family.h"
#include "samples/instruct/instruct_dataset.h"
#include "samples/sample_kind.h"

namespace bloomery {
namespace {

using Tensors = std::map<std::string, std::vector<float>>;

// Numbers of a tensor that one rank, of those that hold them the first, tells.
struct Portion {
  std::string name;
  std::int64_t numel = 0;  // of the whole tensor
  std::vector<std::int64_t> places;
  std::vector<float> numbers;
};

std::vector<Portion> own_portions(Rank& rank, const ShardTensor& which) {
  std::vector<std::vector<float>> shards;
  for (const FlatShard& shard : rank.optimizer().shards()) {
    shards.push_back(which(shard, rank.stream()).to_host<float>(rank.stream()));
  }
  std::vector<Portion> portions;
  for (const ParameterStore::Part& part : rank.store().parts()) {
    if (part.is_padding || !part.shard || !part.is_first_holder) {
      continue;
    }
    Portion& portion =
        portions.emplace_back(Portion{part.parameter->name, part.box.global.numel()});
    for (std::int64_t i = 0; i < part.count; ++i) {
      portion.places.push_back(part.box.global_index(part.first + i));
      portion.numbers.push_back(shards[*part.shard][static_cast<std::size_t>(part.at + i)]);
    }
  }
  return portions;
}

std::string to_bytes(const std::vector<Portion>& portions) {
  FieldWriter bytes;
  for (const Portion& portion : portions) {
    bytes.text(portion.name);
    bytes.number(portion.numel);
    bytes.array(std::span<const std::int64_t>(portion.places));
    bytes.array(std::span<const float>(portion.numbers));
  }
  return bytes.take();
}

void add_portions(std::string_view message, Tensors& whole) {
  for (FieldReader bytes(message); !bytes.at_end();) {
    std::vector<float>& tensor = whole[bytes.text()];
    tensor.resize(static_cast<std::size_t>(bytes.number<std::int64_t>()));
    const std::vector<std::int64_t> places = bytes.array<std::int64_t>();
    const std::vector<float> numbers = bytes.array<float>();
    for (std::size_t i = 0; i < places.size(); ++i) {
      tensor[static_cast<std::size_t>(places[i])] = numbers[i];
    }
  }
}

// Whole on the first rank. Collective.
Tensors gathered(Rank& rank, const ShardTensor& which) {
  Tensors whole;
  HostGroup& host = rank.mesh().world().host();
  for (const std::string& message : host.gather("portions", to_bytes(own_portions(rank, which)))) {
    if (host.rank() == 0) {
      add_portions(message, whole);
    }
  }
  return whole;
}

// The micro-batches of a data-parallel rank: every data_ranks-th of the step.
std::vector<HostBatch> step_batches(const ParityWork& work, std::string_view dataset, int step,
                                    Mesh& mesh) {
  SampleOptions samples;
  samples.data.seq_length = work.length;
  samples.sentences.decoder_seq_length = work.length * 3 / 4;
  const SampleFields fields = !work.fields.empty() ? work.fields
                              : work.pairs ? instruct_fields(work.length, Arrangement::pairs)
                                           : find_sample_kind(dataset).fields(samples);
  std::vector<HostBatch> batches;
  for (std::int64_t m = mesh.coordinate(Axis::data); m < work.micro_batches;
       m += mesh.degree(Axis::data)) {
    batches.push_back(random_batch(fields, work.sequences, work.vocabulary, 7,
                                   (step * work.micro_batches + m) * work.sequences));
  }
  return batches;
}

double relative(double a, double b) {
  return a == b ? 0 : std::abs(a - b) / std::max(std::abs(b), 1e-30);
}

// NaN where either has one.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  check(a.size() == b.size(), "a tensor has ", a.size(), " elements here and ", b.size(), " there");
  double largest = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double apart = std::abs(static_cast<double>(a[i]) - b[i]);
    if (std::isnan(apart)) {
      return apart;
    }
    largest = std::max(largest, apart);
    size = std::max(size, std::abs(static_cast<double>(b[i])));
  }
  return largest == 0 ? 0 : largest / std::max(size, 1e-30);
}

StepDifference compare(const ParityStep& a, const ParityStep& b) {
  StepDifference result{relative(a.loss, b.loss), relative(a.grad_norm, b.grad_norm), {}};
  check(a.gradients.size() == b.gradients.size(), "a layout has ", a.gradients.size(),
        " tensors, one rank ", b.gradients.size());
  for (const auto& [name, gradient] : b.gradients) {
    check(a.gradients.contains(name), "a layout has no tensor ", name);
    result.tensors.push_back({name, difference(a.gradients.at(name), gradient),
                              difference(a.weights.at(name), b.weights.at(name))});
  }
  std::ranges::stable_sort(result.tensors, [](const auto& x, const auto& y) {
    return !(x.gradient <= y.gradient);  // no number is the largest of all
  });
  return result;
}

bool inside(double difference, double band) { return difference <= band; }  // NaN is outside

}  // namespace

ParityRun run_steps(const RankOptions& options, const ParityWork& work,
                    std::unique_ptr<Communicator> world) {
  const int data_ranks = options.layout.degrees.data;
  check(work.micro_batches % data_ranks == 0, work.micro_batches,
        " micro-batches cannot be divided among ", data_ranks, " data-parallel ranks");
  ParityRun run(static_cast<std::size_t>(work.steps));
  const std::string_view dataset = find_family(options.model.family).dataset;
  Rank rank(options, std::move(world));
  for (int s = 0; s < work.steps; ++s) {
    ParityStep& step = run[static_cast<std::size_t>(s)];
    step.loss = rank.accumulate(step_batches(work, dataset, s, rank.mesh()));
    if (work.tensors) {
      step.gradients = gathered(rank, gradient_of);
    }
    rank.enqueue_update(work.micro_batches * work.sequences);
    step.grad_norm = rank.optimizer().report(0).grad_norm;
    if (work.tensors) {
      step.weights = gathered(rank, weights_of);
    }
  }
  return run;
}

ParityRun run_steps(const RankOptions& options, const ParityWork& work, Transport transport) {
  ParityRun run;
  run_ranks(options.layout.degrees.num_ranks(),
            [&](int number, std::unique_ptr<Communicator> world) {
              RankOptions rank = options;
              if (transport == Transport::nccl) {
                rank.device.index = (rank.device.index + number) % std::max(1, num_cuda_devices());
                world = over_nccl(std::move(world), rank.device);
              }
              ParityRun mine = run_steps(rank, work, std::move(world));
              if (number == 0) {
                run = std::move(mine);
              }
            });
  return run;
}

double StepDifference::largest() const {
  double all = std::max(loss, grad_norm);
  for (const ParityDifference& tensor : tensors) {
    for (const double d : {tensor.gradient, tensor.weight}) {
      all = d <= all ? all : d;
    }
  }
  return all;
}

std::vector<StepDifference> compare(const ParityRun& run, const ParityRun& reference) {
  check(run.size() == reference.size(), "runs of different lengths cannot be compared");
  std::vector<StepDifference> all;
  for (std::size_t i = 0; i < run.size(); ++i) {
    all.push_back(compare(run[i], reference[i]));
  }
  return all;
}

std::string first_outside(const std::vector<StepDifference>& differences, double band) {
  for (std::size_t i = 0; i < differences.size(); ++i) {
    const StepDifference& d = differences[i];
    const std::string step = concat("step ", i + 1, ": ");
    if (!inside(d.loss, band)) {
      return concat(step, "the loss differs by ", d.loss, " of it");
    }
    for (const ParityDifference& tensor : d.tensors) {
      if (!inside(tensor.gradient, band)) {
        return concat(step, "the gradient of ", tensor.name, " differs by ", tensor.gradient,
                      " of its largest element");
      }
      if (!inside(tensor.weight, band)) {
        return concat(step, tensor.name, " differs by ", tensor.weight,
                      " of its largest element after the update");
      }
    }
    if (!inside(d.grad_norm, band)) {
      return concat(step, "the gradient norm differs by ", d.grad_norm, " of it");
    }
  }
  return {};
}

}  // namespace bloomery
