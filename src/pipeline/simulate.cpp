#include "pipeline/simulate.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"

namespace bloomery {
namespace {

using Work = Instruction::Work;

// A message as its receiver names it.
struct Message {
  bool gradient;
  int part;  // of the model: whose output it is, or whose output's gradient
  std::int64_t micro_batch;
  auto operator<=>(const Message&) const = default;
};
struct Sent {
  Message message;
  double time;
};

class Simulator {
 public:
  Simulator(const std::vector<Instructions>& lists, int num_chunks, bool training,
            const PassTimes& times)
      : num_stages_(static_cast<int>(lists.size())),
        num_chunks_(num_chunks),
        training_(training),
        times_(times) {
    for (const Instructions& list : lists) {
      stages_.push_back({.steps = steps(list)});
    }
  }

  Simulation run() {
    for (bool moved = true; moved && problem_.empty();) {
      moved = false;
      for (int s = 0; s < num_stages_ && problem_.empty(); ++s) {
        while (problem_.empty() && advance(s)) {
          moved = true;
        }
      }
    }
    for (int s = 0; s < num_stages_ && problem_.empty(); ++s) {
      check_end(s);
    }
    Simulation result{.problem = problem_};
    for (Stage& stage : stages_) {
      result.most_tapes.push_back(stage.most_tapes);
      result.timeline.push_back(std::move(stage.timeline));
    }
    return result;
  }

 private:
  enum class Phase : std::uint8_t { received, forwarded, got_gradient, input_done, done };
  using Key = std::pair<int, std::int64_t>;  // chunk, micro-batch
  struct Stage {
    std::vector<std::span<const Instruction>> steps;
    std::size_t at = 0;
    bool posted = false;       // the sends of this step are known to their receivers
    std::size_t received = 0;  // instructions of this step that are done, in order
    std::map<Key, Phase> phases;
    int tapes = 0, most_tapes = 0;
    std::size_t unreceived = 0;  // messages of this step that their receivers did not take
    double time = 0;             // when this step begins, as far as is known
    std::vector<TimedPass> timeline;
  };

  int part(int stage, int chunk) const { return chunk * num_stages_ + stage; }
  bool is_first(int stage, int chunk) const { return part(stage, chunk) == 0; }
  bool is_last(int stage, int chunk) const {
    return part(stage, chunk) == num_stages_ * num_chunks_ - 1;
  }
  void fail(int stage, const std::string& what) { problem_ = concat("stage ", stage, ": ", what); }

  // Does what can be done of the stage's step; true when something was.
  bool advance(int s) {
    Stage& stage = stages_[static_cast<std::size_t>(s)];
    if (stage.at == stage.steps.size()) {
      return false;
    }
    const auto step = stage.steps[stage.at];
    if (!step.front().is_transfer()) {
      compute(s, step.front());
      ++stage.at;
      return true;
    }
    bool moved = post(s, step);
    moved = receive(s, step) || moved;
    if (problem_.empty() && stage.received == step.size() && stage.unreceived == 0) {
      ++stage.at;
      stage.posted = false;
      stage.received = 0;
      return true;
    }
    return moved;
  }

  bool post(int s, std::span<const Instruction> step) {
    Stage& stage = stages_[static_cast<std::size_t>(s)];
    if (stage.posted) {
      return false;
    }
    stage.posted = true;
    for (const Instruction& i : step) {
      if (i.work == Work::send_activation || i.work == Work::send_gradient) {
        const bool gradient = i.work == Work::send_gradient;
        const auto found = stage.phases.find({i.chunk, i.micro_batch});
        const Phase wanted = gradient ? Phase::input_done : Phase::forwarded;
        if (found == stage.phases.end() || found->second < wanted) {
          fail(s, concat(text(i), " before there is any"));
        }
        const int of = part(s, i.chunk) - (gradient ? 1 : 0);
        const int to = peer_stage(i, s, num_stages_);
        routes_[{s, to}].push_back({{gradient, of, i.micro_batch}, stage.time});
        ++stage.unreceived;
      }
    }
    return true;
  }

  bool receive(int s, std::span<const Instruction> step) {
    Stage& stage = stages_[static_cast<std::size_t>(s)];
    bool moved = false;
    for (; stage.received < step.size(); ++stage.received, moved = true) {
      const Instruction& i = step[stage.received];
      if (i.work == Work::send_activation || i.work == Work::send_gradient) {
        continue;
      }
      const int from = peer_stage(i, s, num_stages_);
      std::deque<Sent>& route = routes_[{from, s}];
      if (route.empty()) {
        return moved;
      }
      const bool gradient = i.work == Work::receive_gradient;
      const int of = part(s, i.chunk) - (gradient ? 0 : 1);
      if (route.front().message != Message{gradient, of, i.micro_batch}) {
        fail(s, concat(text(i), " gets another message of stage ", from));
        return false;
      }
      stage.time = std::max(stage.time, route.front().time);
      route.pop_front();
      --stages_[static_cast<std::size_t>(from)].unreceived;
      note(s, i, gradient ? Phase::got_gradient : Phase::received);
    }
    return moved;
  }

  // A micro-batch passes the phases in order and none twice.
  void note(int s, const Instruction& i, Phase phase) {
    Stage& stage = stages_[static_cast<std::size_t>(s)];
    const auto [found, is_new] = stage.phases.emplace(Key{i.chunk, i.micro_batch}, phase);
    if (!is_new) {
      if (found->second >= phase) {
        fail(s, concat(text(i), " comes again or too late"));
      }
      found->second = phase;
    }
  }

  double seconds(Work work) const {
    const double all = work == Work::forward          ? times_.forward
                       : work == Work::backward_input ? times_.backward_input
                       : work == Work::backward_weight
                           ? times_.backward_weight
                           : times_.backward_input + times_.backward_weight;
    return all / num_chunks_;
  }

  void compute(int s, const Instruction& i) {
    Stage& stage = stages_[static_cast<std::size_t>(s)];
    const double begin = std::exchange(stage.time, stage.time + seconds(i.work));
    stage.timeline.push_back({i, begin, stage.time});
    const auto found = stage.phases.find({i.chunk, i.micro_batch});
    const auto is = [&](Phase phase) {
      return found != stage.phases.end() && found->second == phase;
    };
    if (i.work == Work::forward) {
      if (!is_first(s, i.chunk) && !is(Phase::received)) {
        return fail(s, concat(text(i), " before its input came"));
      }
      note(s, i, Phase::forwarded);
      stage.tapes += training_ ? 1 : 0;
      stage.most_tapes = std::max(stage.most_tapes, stage.tapes);
      return;
    }
    const bool weights = i.work == Work::backward_weight;
    const Phase wanted = weights               ? Phase::input_done
                         : is_last(s, i.chunk) ? Phase::forwarded
                                               : Phase::got_gradient;
    if (!is(wanted)) {
      return fail(s, concat(text(i), " before what it needs"));
    }
    note(s, i, i.work == Work::backward_input ? Phase::input_done : Phase::done);
    stage.tapes -= i.work == Work::backward_input ? 0 : 1;
  }

  void check_end(int s) {
    const Stage& stage = stages_[static_cast<std::size_t>(s)];
    if (stage.at < stage.steps.size()) {
      return fail(s, concat(text(stage.steps[stage.at][std::min(stage.received,
                                                                stage.steps[stage.at].size() - 1)]),
                            " waits forever"));
    }
    for (const auto& [key, phase] : stage.phases) {
      if (phase != (training_ ? Phase::done : Phase::forwarded)) {
        return fail(
            s, concat("micro-batch ", key.second, " of chunk ", key.first, " is left unfinished"));
      }
    }
  }

  const int num_stages_, num_chunks_;
  const bool training_;
  const PassTimes times_;
  std::vector<Stage> stages_;
  std::map<std::pair<int, int>, std::deque<Sent>> routes_;  // from, to
  std::string problem_;
};

}  // namespace

double Simulation::duration() const {
  double end = 0;
  for (const std::vector<TimedPass>& passes : timeline) {
    end = passes.empty() ? end : std::max(end, passes.back().end);
  }
  return end;
}

double Simulation::bubble() const {
  double work = 0;
  for (const std::vector<TimedPass>& passes : timeline) {
    for (const TimedPass& pass : passes) {
      work += pass.end - pass.begin;
    }
  }
  return work > 0 ? duration() * static_cast<double>(timeline.size()) / work - 1 : 0;
}

Simulation simulate(const std::vector<Instructions>& lists, int num_chunks, bool training,
                    const PassTimes& times) {
  return Simulator(lists, num_chunks, training, times).run();
}

}  // namespace bloomery
