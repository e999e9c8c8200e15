#include "apps/parity/parity.h"

#include <fmt/core.h>

#include <algorithm>
#include <sstream>

#include "apps/bloomery.h"
#include "apps/common/command_line.h"
#include "apps/common/device_choice.h"
#include "apps/common/processes.h"
#include "base/findings.h"
#include "pipeline/schedule.h"
#include "train/parity/layout_text.h"
#include "train/parity/parity.h"
#include "train/plan/pretrain_options.h"

namespace bloomery {
namespace {

struct ParityChoice {
  std::string layouts;
  ParityWork work;
  DType dtype = DType::fp32;
  std::string optimizer = "sgd";
  double rate = 0.1;
  double band = 1e-5;
  std::int64_t shown = 3;
  Transport transport = Transport::automatic;
};
constexpr double kTimeoutSeconds = 600;  // one rank waits for another

void describe(OptionTable& t, ParityChoice& o) {
  t.section("parity");
  t.add("layouts", o.layouts,
        "Layouts, separated by commas: tpN tensor-parallel, sp with sequence parallelism, ulN "
        "Ulysses, ppN pipeline stages, vN virtual stages each, gpipe or zb their schedule, dpN "
        "data-parallel, epN expert-parallel, z1 to z3 ZeRO stages; for example "
        "\"tp2sp+pp2zb,dp2z3\".")
      .required();
  add_transport(t, o.transport);
  t.add("steps", o.work.steps, "Steps to train.", between(1, 100000));
  t.add("micro-batches", o.work.micro_batches,
        "Micro-batches per step, over all data-parallel ranks.", between(1, 1e6));
  t.add("micro-batch-size", o.work.sequences, "Sequences of a micro-batch.", between(1, 1e6));
  t.add("seq-length", o.work.length, "Tokens of a sequence.", between(1, 1e7));
  t.add("vocab-size", o.work.vocabulary, "Vocabulary of the random tokens.", between(2, 1e7));
  t.add("dtype", o.dtype, "Data type of parameters and activations.",
        {{"fp32", DType::fp32}, {"bf16", DType::bf16}, {"fp16", DType::fp16}});
  t.add_choice(
      "optimizer", o.optimizer,
      "Optimizer. sgd: weights differ as gradients do. Adam's first steps reduce gradients "
      "to their signs, even pure rounding errors: compare losses and norms with it "
      "(--no-tensors).",
      {"sgd", "adam"});
  t.add("lr", o.rate, "Learning rate.", at_least(0));
  t.add("band", o.band,
        "Relative tolerance of losses, gradient norms, and tensors (relative to the largest "
        "element).",
        at_least(0));
  t.add("tensors", o.work.tensors, "Compare every tensor, not losses and gradient norms alone.")
      .off("Compare losses and gradient norms only, not every tensor.");
  t.add("show", o.shown, "Number of most different tensors to print per layout.", at_least(0));
}

RankOptions rank_options(const ParityChoice& choice, const PretrainOptions& options,
                         const DeviceChoice& device) {
  RankOptions rank;
  rank.model = options.model;
  rank.model.vocabulary.size = choice.work.vocabulary;
  if (rank.model.positions.max_length == 0) {
    rank.model.positions.max_length = choice.work.length;
  }
  rank.dtype = choice.dtype;
  rank.device = device.options();
  rank.seed = static_cast<std::uint64_t>(options.seed);
  if (choice.optimizer == "sgd") {
    rank.optimizer.rule = Momentum{.momentum = 0};
  }
  rank.optimizer.schedule.learning_rate = choice.rate;
  rank.optimizer.schedule.decay_style = DecayStyle::constant;
  return rank;
}

std::vector<std::string> layout_problems(const ParityChoice& choice, const RankOptions& rank) {
  Findings f;
  f.attempt([&] {
    for (const Layout& layout : parse_layouts(choice.layouts)) {
      Findings of;
      of.add(problems(rank.model, layout.degrees));
      of.require(choice.work.micro_batches % layout.degrees.data == 0, choice.work.micro_batches,
                 " micro-batches cannot be divided among its data-parallel ranks");
      const int pieces = layout.degrees.context * (layout.degrees.ring > 1 ? 2 : 1);
      of.require(choice.work.length % pieces == 0, "its ", layout.degrees.context,
                 " sequence-parallel ranks cannot divide ", choice.work.length, " tokens into ",
                 pieces, " pieces");
      const int parts = layout.degrees.pipeline * layout.chunks;
      of.require(parts == 1 || parts <= rank.model.num_layers, parts,
                 " parts of a pipeline need as many layers, not ", rank.model.num_layers);
      const std::string why = problem(
          layout.schedule, {layout.degrees.pipeline,
                            choice.work.micro_batches / layout.degrees.data, layout.chunks});
      of.require(why.empty(), why);
      for (const std::string& line : of.found) {
        f.require(false, to_text(layout), ": ", line);
      }
    }
  });
  return f.found;
}

void print_steps(std::ostream& out, const ParityRun& run,
                 const std::vector<StepDifference>& differences) {
  out << fmt::format("  {:>5} {:>13} {:>10} {:>13} {:>10} {:>10}\n", "step", "loss", "off by",
                     "grad norm", "off by", "tensors");
  for (std::size_t i = 0; i < run.size(); ++i) {
    const StepDifference& d = differences[i];
    double tensors = 0;
    for (const ParityDifference& t : d.tensors) {
      tensors = std::max({tensors, t.gradient, t.weight});
    }
    out << fmt::format("  {:>5} {:>13.7g} {:>10.1e} {:>13.7g} {:>10.1e} {:>10.1e}\n", i + 1,
                       run[i].loss, d.loss, run[i].grad_norm, d.grad_norm, tensors);
  }
}

void print_tensors(std::ostream& out, const StepDifference& last, std::int64_t shown) {
  const auto count = std::min<std::size_t>(last.tensors.size(), static_cast<std::size_t>(shown));
  for (std::size_t i = 0; i < count; ++i) {
    const ParityDifference& t = last.tensors[i];
    out << fmt::format("        {:<40} gradient {:.1e}  weight {:.1e}\n", t.name, t.gradient,
                       t.weight);
  }
}

// What the arguments say.
struct Request {
  PretrainOptions options;
  ParityChoice choice;
  DeviceChoice device;
  OptionTable table;

  explicit Request(const Arguments& arguments) : options(pretrain_defaults(arguments)) {
    options.model.num_layers = 4;
    options.model.hidden_size = 64;
    options.model.attention.num_heads = 8;
    describe(table, choice);
    describe_network(table, options);
    describe(table, device);
  }
};

// Prints how a layout compares with one rank. Whether it stays inside the band.
bool show(std::ostream& out, const ParityChoice& choice, const Layout& layout, const ParityRun& run,
          const ParityRun& one) {
  const std::vector<StepDifference> differences = compare(run, one);
  const std::string found = first_outside(differences, choice.band);
  out << fmt::format("{} ({} ranks): {}\n", to_text(layout), layout.degrees.num_ranks(),
                     found.empty() ? fmt::format("like one rank within {:g}", choice.band)
                                   : "leaves the band at " + found);
  print_steps(out, run, differences);
  print_tensors(out, differences.back(), choice.shown);
  return found.empty();
}

int compare_threads(const ParityChoice& choice, RankOptions rank, std::ostream& out) {
  const ParityRun one = run_steps(rank, choice.work);
  int outside = 0;
  for (const Layout& layout : parse_layouts(choice.layouts)) {
    rank.layout = layout;
    outside +=
        show(out, choice, layout, run_steps(rank, choice.work, choice.transport), one) ? 0 : 1;
  }
  return outside == 0 ? kFinished : kFailed;
}

// As one of several processes: the first of them train a layout, the very first speaks.
int compare_processes(const Request& request, const StartFacts& facts, const JoinedWorld& joined,
                      std::ostream& out) {
  const ParityChoice& choice = request.choice;
  RankOptions rank = rank_options(choice, request.options, request.device);
  rank.device = rank_device(request.device, request.table.given("gpu"), facts, *joined.host);
  const std::vector<Layout> layouts = parse_layouts(choice.layouts);
  for (const Layout& layout : layouts) {
    check(layout.degrees.num_ranks() <= facts.size, to_text(layout), " takes ",
          layout.degrees.num_ranks(), " ranks, and ", facts.size, " processes were started");
  }
  const std::unique_ptr<Communicator> world =
      make_world(joined, choice.transport, rank.device, kTimeoutSeconds);
  const bool first = facts.rank == 0;
  const ParityRun one = first ? run_steps(rank, choice.work) : ParityRun();
  int outside = 0;
  for (const Layout& layout : layouts) {
    const bool takes_part = facts.rank < layout.degrees.num_ranks();
    std::unique_ptr<Communicator> ranks = world->split(takes_part ? 0 : 1, facts.rank);
    if (takes_part) {
      rank.layout = layout;
      const ParityRun run = run_steps(rank, choice.work, std::move(ranks));
      outside += first && !show(out, choice, layout, run, one) ? 1 : 0;
    }
  }
  return joined.host->any("outside the band", outside > 0) ? kFailed : kFinished;
}

}  // namespace

int parity(const Arguments& arguments, std::ostream& out) {
  const StartFacts facts = start_facts(environment_variables());
  Request request(arguments);
  const auto read = [&](std::ostream& to) {
    return read_options(
        request.table, arguments, to,
        "usage: bloomery parity --layouts LIST [OPTIONS]\n\nTrains a small model, or the model of "
        "the options, on random tokens, with one rank and under each layout, and compares the "
        "numbers. Ranks are threads, or processes under mpirun or bloomery launch.\n\nexample:\n  "
        "bloomery parity --layouts tp2,pp2,dp2z3\n",
        [&] {
          return layout_problems(request.choice,
                                 rank_options(request.choice, request.options, request.device));
        });
  };
  if (facts.size == 1) {
    return read(out)
               ? compare_threads(request.choice,
                                 rank_options(request.choice, request.options, request.device), out)
               : kFinished;
  }
  std::ostringstream null_stream;
  return run_joined(facts, [&](const RankProcess& process) {
    std::string problem;
    try {
      if (!read(facts.rank == 0 ? out : null_stream)) {
        return int{kFinished};
      }
    } catch (const Error& error) {
      problem = error.what();
    }
    return agree_on_options(*process.joined.host, problem, request.table.json())
               ? compare_processes(request, facts, process.joined, out)
               : int{kBadInput};
  });
}

}  // namespace bloomery
