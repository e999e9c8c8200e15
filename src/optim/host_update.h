// Updates of shards whose master weights and moments lie on the host, in memory or in files.
// Gradients come over as soon as they are final, beside the backward pass; the rank's threads
// update; the rounded weights go back, part by part in the order of the next forward pass, which
// waits for each part when it wants it. Numbers are those of an update on a CPU device.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "ops/optimizer/update.h"
#include "optim/flat_shard.h"
#include "optim/state_files.h"

namespace bloomery {

class HostUpdate {
 public:
  // Launches the update of these buffers, host memory, on a stream of the host.
  using Rule = std::function<void(Stream& host, const UpdateBuffers&, const UpdateScalars*)>;

  // Of the shards that lie on the host, which must stay where they are. `compute`: what reads and
  // writes their values and gradients on the device. `copies`: a queued stream of that device, for
  // copies both ways. It must end before what is copied does, so it outlives this.
  HostUpdate(Stream& compute, Stream& copies, std::vector<FlatShard>& shards, Rule rule);
  ~HostUpdate();
  HostUpdate(const HostUpdate&) = delete;
  HostUpdate& operator=(const HostUpdate&) = delete;

  // The bucket's gradients are final after what was given to `after`: starts their way here.
  void fetch_gradients(std::size_t bucket, Stream& after);
  // Updates everything by the scalars, which are on the device after what was given to it.
  // Gradients that were not fetched yet are.
  void start(const UpdateScalars* scalars);

  // What the computation does next finds the new values of a bucket. The host waits until they are
  // on their way, and rethrows what kept them from it.
  void await(std::size_t bucket);
  void await_all();
  // Nothing is under way any more: everything on the host may be read and written.
  void finish();

 private:
  struct Part {
    FlatShard* shard;
    HostPart place;
    Tensor grad;  // here
    enum class Sends { nothing, rounded, master } sends = Sends::nothing;
    Tensor rounded;        // here, of Sends::rounded
    Tensor master;         // here, after an update, of Sends::master
    bool fetched = false;  // its gradient, in this step
    bool awaited = true;
    bool sent = true;                // guarded by mutex_: it is on its way, or will never be
    std::exception_ptr failure;      // likewise
    std::shared_ptr<Event> arrived;  // likewise; null: nothing was changed
  };

  void add_parts(FlatShard& shard);
  void fetch(Part& part);
  void update(std::size_t turn);
  void read_ahead(std::size_t turn);
  // Of the part whose turn it is: master weights, then the optimizer's state.
  StateFiles::Part state_of(std::size_t turn) const;
  void send(Part& part);
  std::shared_ptr<Event> copy_value(Part& part);  // null: nothing goes to a device

  Stream *compute_, *copies_, *host_;
  Rule rule_;
  std::unique_ptr<PinnedMemory> scalars_;
  std::vector<Part> parts_;  // in the order of the backward pass; updates go the other way
  StateFiles* files_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace bloomery
