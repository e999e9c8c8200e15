// DeepSpeed's states of an optimizer, as its ZeRO stages leave them: flat buffers, cut over the
// data-parallel ranks.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/megatron/local_tensors.h"
#include "checkpoint/snapshot.h"

namespace bloomery {

// A parameter as DeepSpeed names it, with its elements, to the tensor that it is; none: it is not
// asked for.
using FindTensor =
    std::function<std::optional<LocalTensor>(const std::string& parameter, std::int64_t size)>;

// Adds what the files of ranks hold that divide the same parameters, in the order of their shares:
// all of a model-parallel rank, or those with the same experts. `model` is such a rank's file of
// model states, which may know the names.
void add_zero_states(ForeignParts& parts, const std::vector<TorchValue>& files,
                     const TorchValue& model, const FindTensor& find);

// Those of a run without ZeRO, in the file of model states. The tensors are in the order of the
// module's parameters. False: they are not those of these tensors.
bool add_plain_states(ForeignParts& parts, const TorchValue& optimizer,
                      const std::vector<LocalTensor>& tensors);

// Steps taken and the scale of the loss, as far as `optimizer` says them.
void read_optimizer_progress(RunState& state, const TorchValue& optimizer, const TorchValue& model);

}  // namespace bloomery
