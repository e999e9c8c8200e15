// What lives on a rank: its pipeline stage of the model, the parameter store, the reducer of
// gradients, the optimizer, and what of it is offloaded.
#pragma once

#include <future>
#include <memory>
#include <vector>

#include "device/host_side.h"
#include "models/model.h"
#include "ops/quantized/quantized_weights.h"
#include "parallel/sequence_parts.h"
#include "train/step/stage_features.h"
#include "zero/reducer.h"

namespace bloomery {

class Teacher;

class Stage {
 public:
  // Collective over `world`, which has the layout's number of ranks.
  Stage(const RankOptions& options, std::unique_ptr<Communicator> world);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  void await_initial_values();
  const RankOptions& options() const { return options_; }

  Stream& stream() { return *stream_; }
  Mesh& mesh() { return *mesh_; }
  // What of the sequences of its micro-batches is uploaded here.
  SequenceShare sequence_share() const {
    return bloomery::sequence_share(*mesh_, options_.sequence_chunk);
  }
  // Beside the computation; null: nothing to do.
  Stream* communication_stream() { return communication_.get(); }
  Stream* reductions_stream() { return reductions_.get(); }
  Stream* gathers_stream() { return gathers_.get(); }

  const std::vector<std::unique_ptr<Model>>& chunks() const { return chunks_; }
  const ParameterList& parameters() const { return parameters_; }  // of all chunks
  ParameterStore& store() { return *store_; }
  const Ties& ties() const { return *ties_; }
  Reducer& reducer() { return *reducer_; }
  Optimizer& optimizer() { return *optimizer_; }
  StateFiles* files() { return files_.get(); }  // null: no state is in files
  HostSide* host() { return host_.get(); }      // null: everything is on the device
  // Frozen weights, which the store does not have; null: all are values.
  QuantizedWeights* quantized() { return quantized_.get(); }
  StageFeatures& features() { return *features_; }
  Teacher* teacher() { return teacher_.get(); }  // null: there is none

  // For a pass over this stage, with dropout if both the options and the pass ask for it.
  Context context(const Batch& batch, const Features& features, Tape* tape, bool training);

  // Waits, in the stream, for what streams beside the computation still read and write, and hears
  // of failures there: on a CPU of the streams, and of files.
  void finish_passes();
  void hear_of_failures();

 private:
  void make_chunks();
  void make_streams();
  void initialize_values();
  void quantize_base(std::vector<ParameterList>& blocks);
  void prepare_offload();
  ParameterList weights_in_layers() const;
  StoreOptions store_options(const Ties* ties) const;

  RankOptions options_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  // What streams beside the computation use: the layers', and that of gradients.
  CrossStreamRefs kept_, kept_gradients_;
  std::unique_ptr<HostSide> host_;
  std::unique_ptr<StateFiles> files_, value_files_;  // null: none
  std::unique_ptr<StageFeatures> features_;
  std::unique_ptr<Stream> state_copies_, activation_copies_;  // to the host and back; null: none
  std::unique_ptr<Mesh> mesh_;
  std::vector<std::unique_ptr<Model>> chunks_;
  ParameterList parameters_;
  std::unique_ptr<QuantizedWeights> quantized_;
  std::unique_ptr<Ties> ties_;
  std::unique_ptr<ParameterStore> store_;
  std::unique_ptr<Teacher> teacher_;
  // Beside the computation, null where there is nothing to do: what layers communicate, and sums of
  // gradients and gathers of values, which must not hold it up.
  std::unique_ptr<Stream> communication_, reductions_, gathers_;
  std::unique_ptr<Reducer> reducer_;
  std::unique_ptr<Optimizer> optimizer_;
  std::future<void> initial_values_;  // on their way; the last member, for it is awaited first
};

// The trained weights move to the grids that they are rounded to after so many steps: the end of a
// run. Returns the bits; 0: none are rounded. Collective.
int put_weights_on_grids(Stage& stage, std::int64_t completed_steps);

}  // namespace bloomery
