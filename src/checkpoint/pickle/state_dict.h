// The state dict in a pickle of torch.save: which tensor lies where in which storage.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "checkpoint/pickle/pickle.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace bloomery {

// An element type of PyTorch, by the class of its storages.
struct TorchType {
  std::string_view global;     // "torch FloatStorage"
  std::size_t bytes;           // of an element
  std::optional<DType> dtype;  // none: a type that we do not compute with

  std::string_view name() const { return global.substr(global.find(' ') + 1); }
};

// Where the numbers of one or several tensors lie.
struct TorchStorage {
  const TorchType* type = nullptr;
  std::string key;
  std::int64_t num_elements = 0;

  std::size_t bytes() const { return static_cast<std::size_t>(num_elements) * type->bytes; }
};

// A view of a storage that lies inside it.
struct TorchTensor {
  TorchStorage storage;
  std::int64_t offset = 0;  // in elements, as are the strides
  Shape shape, strides;
};

// Reads a pickle of torch.save at the start of `input`; see read_pickle. A state dict needs no
// other globals than those of tensors.
Pickle read_torch_pickle(std::span<const std::byte> input, const std::string& source,
                         bool other_globals = false);

// One of the values: a tensor or parameter, and the storage behind a reference. `name` is what
// messages call it.
bool is_tensor(const Pickle& pickle, std::uint32_t value);
TorchTensor read_tensor(const Pickle& pickle, std::uint32_t value, const std::string& source,
                        const std::string& name);
TorchStorage read_storage(const Pickle& pickle, std::uint32_t value, const std::string& source);

// The tensors of a dict of names to tensors or parameters; anything else is an Error.
std::map<std::string, TorchTensor> read_state_dict(const Pickle& pickle, const std::string& source);

}  // namespace bloomery
