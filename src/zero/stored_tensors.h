// The flat buffers of a parameter store: one record each, of what it holds and where it lies.
#pragma once

#include <vector>

#include "base/error.h"
#include "optim/placement.h"
#include "tensor/tensor.h"

namespace bloomery {

enum class Content : std::uint8_t {
  values,
  gradients,
  master,      // exact weights beside rounded values, or beside values elsewhere
  low_halves,  // of split weights, beside their values
  unit_flags,
};

class StoredTensors {
 public:
  void add(Content content, Placement placement, Tensor tensor) {
    records_.push_back({content, placement, std::move(tensor)});
  }

  const Tensor& at(Content content, Placement placement = Placement::device) const {
    for (const Record& record : records_) {
      if (record.content == content && record.placement == placement) {
        return record.tensor;
      }
    }
    throw Error("a store was asked for a tensor that it does not have");
  }

  std::size_t bytes(Content content, Placement placement = Placement::device) const {
    std::size_t bytes = 0;
    for (const Record& record : records_) {
      bytes +=
          record.content == content && record.placement == placement ? record.tensor.bytes() : 0;
    }
    return bytes;
  }

 private:
  struct Record {
    Content content;
    Placement placement;
    Tensor tensor;
  };
  std::vector<Record> records_;
};

}  // namespace bloomery
