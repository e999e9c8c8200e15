// Gathers of values over the ranks that hold shards of them, on a stream beside the computation.
//
// A gather comes after everything that the computation was given before it, so it reads finished
// shards and may overwrite memory that the computation has used; the computation waits for it
// before it uses what was gathered.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "comm/mesh.h"
#include "optim/placement.h"
#include "zero/buckets.h"

namespace bloomery {

class Gatherer {
 public:
  // `beside`: null: on the stream of the computation. All must outlive the gatherer; the memory of
  // gathers must outlive `beside`.
  Gatherer(Mesh& mesh, Stream& compute, Stream* beside)
      : mesh_(&mesh), compute_(&compute), beside_(beside) {}

  // Called before the shard of a bucket is read.
  std::function<void(const Bucket&)> before_gather;

  bool overlaps() const { return beside_ != nullptr; }

  struct Gather {
    const Bucket* bucket;
    Tensor shard, whole;
    Placement placement = Placement::device;  // of the shard
  };
  // Starts them, one after another. What it returns has happened when all are there; null: nothing
  // is to be waited for. Collective over the ranks that share the buckets.
  std::shared_ptr<Event> start(std::span<const Gather> gathers);
  // What the computation does next comes after the event; null: nothing.
  void wait(const std::shared_ptr<Event>& arrived);
  // The same for all gathers that were started: the shards may be written again.
  void wait_for_all() { wait(std::exchange(last_, {})); }

 private:
  Mesh* mesh_;
  Stream *compute_, *beside_;
  std::shared_ptr<Event> last_;
};

}  // namespace bloomery
