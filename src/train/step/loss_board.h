// The named losses of a step: reported by the forward passes of micro-batches on each stage,
// averaged on the device over micro-batches, stages and ranks, read by the host a step later.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "comm/mesh.h"
#include "tensor/readback.h"
#include "train/report/iteration_line.h"
#include "train/step/executor.h"

namespace bloomery {

using Losses = std::vector<NamedLoss>;

class LossBoard final : public PassReader {
 public:
  // Losses are added up in this dtype. Stream and mesh must outlive the board.
  LossBoard(Stream& stream, Mesh& mesh, DType dtype);

  // A step or an evaluation begins, of so many micro-batches on all ranks together.
  void begin(std::int64_t num_parts);
  // What a forward pass reported.
  void read(const Batch& batch, const Metrics& metrics) override;

  // The step is over: sums over ranks start. `stop` is this rank's wish to end the run. Collective.
  void publish(bool stop);
  struct Step {
    Losses losses;      // those that are trained on first
    bool stop = false;  // some rank had the wish
  };
  // Of the step before the last `age` ones; waits for it.
  Step step(int age) const;

  // Of an evaluation, over the ranks; waits for the device. Collective.
  Losses means();

 private:
  std::int64_t place_of(const std::string& name);
  void sum(const Tensor& statistics);
  void learn_names();
  bool news_of_names() const;
  bool knows_own_names() const;
  Losses named(const std::vector<double>& numbers) const;

  Stream& stream_;
  Mesh& mesh_;
  double factor_ = 1;  // of the losses of a micro-batch
  // Of what is in work: mean losses, and behind them how many ranks want to stop, and how many have
  // losses whose names the other stages do not know.
  Tensor statistics_;
  Tensor one_;
  std::vector<std::string> own_names_;  // in the order of the statistics
  std::vector<std::string> names_;      // of all stages, in the order of summed statistics
  std::set<std::string> names_beside_;  // Metrics::Entry::beside
  std::int64_t num_published_ = 0;
  Readback readback_;
};

}  // namespace bloomery
