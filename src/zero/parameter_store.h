// The memory behind a rank's parameters: values, gradients and fp32 master weights in flat buffers
// (of bf16 values what their rounding left, optim/master_weights.h), cut into buckets (buckets.h).
// Three facts say what of them is sharded over the ranks that hold the same parameters; nothing
// else distinguishes the stages of ZeRO. With one shard everything is one contiguous range, which
// the optimizer updates at once.
//
// Gradients. Contributions are counted here, per parameter and micro-batch, so it does not matter
// which tape they come from. A complete bucket is handed out once per step, or, where gradients are
// sharded and whole ones exist for a moment only, once per micro-batch.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "comm/mesh.h"
#include "optim/master_weights.h"
#include "optim/optimizer.h"
#include "zero/gathered_blocks.h"
#include "zero/stored_tensors.h"
#include "zero/ties.h"

namespace bloomery {

struct StoreOptions {
  DType dtype = DType::fp32;       // values; master weights are fp32 (fp64 for fp64)
  DType grad_dtype = DType::fp32;  // as master weights, or that of values in bf16
  Sharding sharded;
  std::int64_t bucket_elements = 0;  // at most; 0: by the size of the model
  const Ties* ties = nullptr;        // null: no weight is shared by stages
  // Where values are gathered beside the computation; null: in its stream. It must end before the
  // store does.
  Stream* gathers = nullptr;
  // Where master weights and the optimizer's state of so large a share of the elements lie: those
  // whose gradients are final first. The others are on the device.
  Placement state = Placement::device;
  double host_share = 1;
  Placement values = Placement::device;  // or host, where they are sharded and no state is here
  // Of the host's memory and threads, if anything lies beside the device.
  Stream* host = nullptr;
  StateFiles* files = nullptr;  // of Placement::file
};

// Of the buffers that stay on the device.
struct StoreBytes {
  std::size_t values = 0, gradients = 0, master = 0;
  std::size_t blocks = 0;  // where values of which shards stay are whole while they are used
  std::size_t total() const { return values + gradients + master + blocks; }
};

class ParameterStore final : public ParameterAccess {
 public:
  // Places the parameters of the blocks, allocates the buffers and makes every Parameter::value and
  // grad a part of them. The parameters, the mesh and the ties must outlive the store.
  ParameterStore(Stream& stream, Mesh& mesh, const std::vector<ParameterList>& blocks,
                 const StoreOptions& options);
  ParameterStore(const ParameterStore&) = delete;
  ParameterStore& operator=(const ParameterStore&) = delete;

  // Initial numbers: master weights are the fp32 numbers, values their rounding.
  void initialize(std::uint64_t seed);

  // Called before new values of a bucket are used, which are then awaited; null: an update has
  // happened when it was given to the stream.
  std::function<void(std::size_t bucket)> await_update;

  // Values of the parameters, whole and new from acquire to release: gathered where they are
  // sharded, and waited for where they are still on their way after an update.
  void acquire(const ParameterList& parameters) override;
  void release(const ParameterList& parameters) override;
  // What must be asked for values before they are read; null: they are always there.
  ParameterAccess* access();
  // A pass over the model begins: its order of uses is that of the last one, if it can be.
  void begin_pass(Pass pass);
  // The computation waits for all gathers: from then on shards may be written, and values that are
  // whole read without asking.
  void wait_gathers();
  // After an update of the shards: starts gathers of the values that are whole, in the order in
  // which the next forward pass wants them.
  void gather_updated_values();
  // After master weights were set: rounds them and starts the gathers. Those that share memory with
  // values may be set when wait_gathers() was called.
  void refresh_from_master();

  // A training step of so many micro-batches begins: the next contributions overwrite.
  void begin_step(std::int64_t num_micro_batches);
  // A contribution is about to be written: makes sure that there is memory for it.
  void prepare_grad(Parameter& parameter);
  // It was written. Returns the bucket that it completes, to be reduced.
  std::optional<std::size_t> contributed(Parameter& parameter, std::int64_t micro_batch);
  // After the last one: the buckets that were not handed out, with zeros where nothing contributed.
  // Tied ones are always among them: the stages come to their gradients at different times.
  std::vector<std::size_t> finish_step();
  // The gradients of a complete bucket. Where they are sharded the memory is given away, and what
  // is contributed next goes to other memory.
  Tensor take_grads(std::size_t bucket);
  // Where sums over ranks are accumulated if gradients are sharded, and whether anything is there.
  struct GradShard {
    Tensor sums;
    bool add = false;
  };
  GradShard grad_shard(std::size_t bucket);

  // Whether what was taken last is all of the step.
  bool is_final(std::size_t bucket) const { return states_[bucket].handed_out; }

  const std::vector<Bucket>& buckets() const { return buckets_; }
  const Sharding& sharded() const { return sharded_; }
  // What this rank's optimizer updates: adjacent buckets are one range where possible.
  std::vector<FlatShard> shards() const;
  // Axes along which ranks hold different shards, or count different parameters, in a norm.
  AxisSet norm_axes() const;

  // What this rank holds of a parameter: elements [first, first + count) of its true rows, or of
  // its padding rows, which all ranks' together, one after another, are a tensor of their own.
  // Weights are master weights, or values if it is frozen. Moments lie at `at` of shard number
  // `shard`.
  struct Part {
    const Parameter* parameter;
    bool is_padding = false;
    Box box;  // of the rows that `first` counts in
    std::int64_t first = 0, count = 0;
    MasterWeights weights;
    std::optional<std::size_t> shard;  // none: frozen
    std::int64_t at = 0;
    // Of several ranks with the same part one says yes: it counts in norms and is saved.
    bool is_first_holder = true;
  };
  std::vector<Part> parts() const;

  std::int64_t num_elements() const;  // of all buckets that are trained
  StoreBytes bytes() const;

 private:
  struct Contributions {  // of one micro-batch to a bucket
    std::map<const Parameter*, int> counts;
    int total = 0;
  };
  struct BucketState {
    int num_uses = 0;                                     // contributions per micro-batch
    std::map<std::int64_t, Contributions> contributions;  // of incomplete micro-batches
    std::set<std::int64_t> complete;                      // micro-batches
    bool handed_out = false;
    Tensor grads;                    // if gradients are sharded: of what was not handed out yet
    bool has_sums = false;           // likewise: this rank's shard has sums of this step
    int num_users = 0;               // if values are sharded: from acquire to release
    std::shared_ptr<Event> arrived;  // else, if they were published: when they are whole
  };
  // A range of the flat buffers that the optimizer sees as one. What lies on the host comes first.
  struct Range {
    std::int64_t value, grad, shard, count;
    Placement placement;  // of its state
  };

  void allocate(const std::vector<ParameterList>& blocks);
  void make_unit_flags();
  bool is_first_holder(const Parameter& parameter) const;
  void allocate_master(std::int64_t trained_shards);
  // Of weights whose state lies there.
  WeightForm form_at(Placement placement) const;
  const Tensor& values() const { return tensors_.at(Content::values, options_.values); }
  const Tensor& gradients() const { return tensors_.at(Content::gradients); }
  MasterWeights master_of(const Range& range, std::int64_t first, std::int64_t count) const;
  void choose_host_share(std::int64_t trained_shards);
  std::vector<Range> merged_ranges() const;
  std::vector<HostPart> host_parts(const Range& range) const;
  void round_master(const FlatShard& shard);
  void bind_values(const Bucket& bucket, const Tensor& whole) const;
  void bind_grads(const Bucket& bucket, const Tensor& whole) const;
  Tensor value_shard(const Bucket& bucket) const;
  std::vector<std::size_t> buckets_of(const ParameterList& parameters) const;
  std::int64_t largest_block(const std::vector<ParameterList>& blocks) const;
  Box padding_box(const Parameter& parameter) const;
  void add_part(std::vector<Part>& parts, const Bucket& bucket, std::int64_t first,
                Part part) const;
  template <class Numbers>
  void initialize_place(const Bucket& bucket, const Place& place, std::uint64_t seed,
                        Numbers& numbers);
  template <class Numbers>
  void initialize_master(const Bucket& bucket, const Place& place, const Numbers& numbers);

  Stream* stream_;
  Mesh* mesh_;
  StoreOptions options_;
  Sharding sharded_;  // as far as several ranks hold the same
  std::vector<Bucket> buckets_;
  std::vector<BucketState> states_;
  std::unordered_map<const Parameter*, std::size_t> bucket_of_;
  std::int64_t num_micro_batches_ = 0;
  // Each of everything, or of this rank's shards. The state of the shards' first elements lies
  // beside the device: what is on the device of master weights begins behind these.
  StoredTensors tensors_;
  std::int64_t num_beside_ = 0;
  std::vector<Range> ranges_;
  Gatherer gatherer_;
  std::optional<GatheredBlocks> whole_;  // if values are sharded
};

}  // namespace bloomery
