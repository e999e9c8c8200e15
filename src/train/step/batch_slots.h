// Memory at fixed addresses for one micro-batch: a captured graph reads no other.
#pragma once

#include <optional>

#include "autograd/batch.h"

namespace bloomery {

class BatchSlots {
 public:
  explicit BatchSlots(Stream& stream) : stream_(stream) {}

  // Copies the tensors of a batch in the stream; the batch itself may go then. Positions and places
  // that are the very tensors of the last batch are taken to be the same. False: the batch did not
  // fit, so that the addresses are others now. One whose sequences are divided is an Error.
  bool fill(const Batch& batch);
  // What is in the slots; asked for after the first fill.
  const Batch& batch() const { return *batch_; }

 private:
  Stream& stream_;
  std::optional<Batch> batch_;
  std::weak_ptr<Storage> positions_, places_;  // that were copied last
};

}  // namespace bloomery
