// Makes the Features of a stage, what its layers know besides their inputs, from the options of a
// rank, and advances them with the steps of a run.
#pragma once

#include <memory>

#include "autograd/features.h"
#include "autograd/inputs_on_host.h"
#include "nn/token_dropping.h"
#include "parallel/sequence_chunks.h"
#include "train/step/rank_options.h"

namespace bloomery {

// Whose passes begin.
struct PassFacts {
  std::int64_t completed_steps = 0;  // of the run
  std::int64_t kept_tokens = 0;      // of each sequence, by layers that drop tokens; 0: all
  bool training = true;
};

class StageFeatures {
 public:
  // Where inputs and keys wait on the host: its stream, and that of the copies; null: nowhere.
  struct HostCopies {
    Stream* host = nullptr;
    Stream* copies = nullptr;
  };
  // `layers`: the matrices of linear layers in blocks. `keep`: copies of them stay from pass to
  // pass (values are not sharded). All must outlive this, but the copies must end before it does.
  StageFeatures(const RankOptions& options, Stream& stream, Mesh& mesh, const ParameterList& layers,
                bool keep, HostCopies host);

  const Features& features() const { return features_; }
  void begin_pass(const PassFacts& facts);
  // Of training: scales and ranges follow what the step saw. Collective.
  void end_step();

  Fp8Layers* fp8() { return fp8_.get(); }  // null: nothing is in 8 bits
  FakeQuantLayers* fake_quant_layers() {
    return fake_quant_layers_.get();
  }  // null: nothing is rounded

 private:
  const RankOptions& options_;
  Stream& stream_;
  Mesh& mesh_;
  std::unique_ptr<InputsOnHost> inputs_on_host_;
  SequenceChunks sequence_chunks_;
  std::unique_ptr<Fp8Layers> fp8_;
  std::unique_ptr<FakeQuantLayers> fake_quant_layers_;
  TokenDropping token_dropping_;
  LayerDropping layer_dropping_;
  Features features_;
};

}  // namespace bloomery
