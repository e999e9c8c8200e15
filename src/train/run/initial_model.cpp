#include "train/run/initial_model.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "checkpoint/boxes.h"
#include "checkpoint/hf/adapter.h"
#include "checkpoint/model_source.h"
#include "models/family.h"
#include "models/record.h"
#include "nn/adapter.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/quantized/quantized_weights.h"

namespace bloomery {
namespace {

using Part = ParameterStore::Part;

// Elements [first, first + count) of `part` of a tensor of the host.
std::vector<std::byte> bytes_of(const Tensor& whole, const Box& part, std::int64_t first,
                                std::int64_t count) {
  const auto* numbers = static_cast<const std::byte*>(whole.data());
  const std::size_t size = size_of(whole.dtype());
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) * size);
  std::byte* next = bytes.data();
  for (const Box& box : boxes_of_range(part, first, count)) {
    for_each_run(box, Box::whole(whole.shape()), box,
                 [&](std::int64_t from, std::int64_t to, std::int64_t count) {
                   std::memcpy(next + static_cast<std::size_t>(to) * size,
                               numbers + static_cast<std::size_t>(from) * size,
                               static_cast<std::size_t>(count) * size);
                 });
    next += static_cast<std::size_t>(box.extent.numel()) * size;
  }
  return bytes;
}

// The part of `whole` that is held here.
void put_part(Stream& stream, const Part& part, const Tensor& whole) {
  const std::vector<std::byte> bytes = bytes_of(whole, part.box, part.first, part.count);
  const Tensor room = part.weights.room(stream);
  put(stream, whole.dtype(), bytes, room);
  part.weights.set(stream, room);
  stream.synchronize();  // the host bytes end here
}

template <class Values>
void put_quantized(Stream& stream, QuantizedWeights& quantized, const Values& values) {
  for (const Parameter* weight : quantized.weights()) {
    const Tensor whole = values(*weight);
    const Box all = QuantizedWeights::whole_rows(*weight);
    const std::int64_t columns = all.extent.back(), num_rows = whole ? all.extent.rows() : 0;
    const std::int64_t step = QuantizedWeights::rows_at_once(*weight);
    for (std::int64_t row = 0; row < num_rows; row += step) {
      const std::int64_t count = std::min(step, num_rows - row);
      const Tensor rows = Tensor::empty(stream, quantized.dtype(), {count, columns});
      const std::vector<std::byte> bytes = bytes_of(whole, all, row * columns, count * columns);
      put(stream, whole.dtype(), bytes, rows);
      quantized.put_rows(*weight, row, rows);
      stream.synchronize();  // the host bytes end here
    }
  }
}

// `values(parameter)` is the whole tensor, or null: it stays as it is.
template <class Values>
void put_all(const ModelMemory& memory, const Values& values) {
  auto& [stream, store, quantized] = memory;
  store.wait_gathers();
  for (const Part& part : store.parts()) {
    if (const Tensor whole = part.is_padding ? Tensor() : values(*part.parameter)) {
      put_part(stream, part, whole);
    }
  }
  if (quantized != nullptr) {
    put_quantized(stream, *quantized, values);
  }
  store.refresh_from_master();
  stream.synchronize();
}

void require_same(const ModelOptions& here, const ModelOptions& stored,
                  const std::filesystem::path& folder) {
  std::string wrong;
  for (const std::string& line : model_differences(here, stored)) {
    wrong += "\n  " + line;
  }
  check(wrong.empty(), folder.string(), " holds another model than the flags ask for:", wrong);
}

// What the source has; the rest, a head or a pooler, stays as it was drawn. A tensor of another
// shape is that of another head.
std::vector<std::string> load_without_head(const ModelMemory& memory, const ModelOptions& model,
                                           const ModelSource& source) {
  const auto fits = [&](const Parameter& each) {
    const auto found = source.weights().find(each.name);
    return found != source.weights().end() && found->second.shape == each.box.global;
  };
  const auto stored = [&](const Parameter& each) {
    if (fits(each)) {
      return source.read(each.name);
    }
    const Tensor unused = source.read_unused(each.name);
    return unused && unused.shape() == each.box.global ? unused : Tensor();
  };
  put_all(memory, stored);
  std::set<std::string> drawn;
  const Model whole(model, Mesh::single(), DType::fp32);
  for (const Parameter* each : whole.parameters()) {
    if (!fits(*each) && !stored(*each)) {
      drawn.insert(each->name.substr(0, each->name.find('.')));
    }
  }
  std::vector<std::string> notes;
  for (const std::string& part : drawn) {
    notes.push_back(concat("could not find ", part, " in the checkpoint, initializing to random"));
  }
  return notes;
}

// The initial numbers that a whole parameter of this name would have.
Tensor initial_tensor(Stream& host, const Parameter& parameter, const std::string& name,
                      std::uint64_t seed) {
  Parameter whole = parameter;
  whole.name = name;
  whole.box = Box::whole(parameter.box.global);
  whole.local_shape = whole.box.global;
  Tensor numbers = Tensor::empty(host, DType::fp32, whole.local_shape);
  initial_numbers(
      whole, seed, host.device().pool(),
      std::span(static_cast<float*>(numbers.data()), static_cast<std::size_t>(numbers.numel())));
  return numbers;
}

}  // namespace

void put(Stream& stream, DType dtype, std::span<const std::byte> bytes, const Tensor& to) {
  if (dtype == to.dtype()) {
    stream.copy(to.data(), bytes.data(), bytes.size());
  } else {
    const Tensor stored = Tensor::empty(stream, dtype, to.shape());
    stream.copy(stored.data(), bytes.data(), bytes.size());
    launch(stream, ScaleAdd{.x = stored, .y = to});
  }
}

void load_model(const ModelMemory& memory, const ModelOptions& model,
                const std::filesystem::path& folder) {
  Device host(DeviceOptions{});
  Stream reading(host);
  const std::unique_ptr<ModelSource> source = open_model(reading, folder, Log());
  const ModelOptions& stored = source->record().model;
  require_same(stored.adapter.enabled ? model : without_adapter(model), stored, folder);
  put_all(memory, [&](const Parameter& each) {
    return stored.adapter.enabled || !is_adapter_parameter(each.name) ? source->read(each.name)
                                                                      : Tensor();
  });
}

void load_adapter(const ModelMemory& memory, const std::filesystem::path& base,
                  const std::filesystem::path& folder) {
  Device host(DeviceOptions{});
  Stream reading(host);
  const std::unique_ptr<ModelSource> source =
      with_adapter(open_model(reading, base, Log()), Adapter(reading, folder));
  put_all(memory, [&](const Parameter& each) {
    return is_adapter_parameter(each.name) ? source->read(each.name) : Tensor();
  });
}

std::vector<std::string> load_start(const ModelMemory& memory, const ModelOptions& model,
                                    std::uint64_t seed, const std::filesystem::path& folder) {
  Device host(DeviceOptions{});
  Stream reading(host);
  const std::unique_ptr<ModelSource> source = open_model(reading, folder, Log());
  const std::string_view wanted =
      model.task.any() ? model.family : find_family(model.family).starts_from;
  const ModelOptions& stored = source->record().model;
  check(stored.family == wanted, folder.string(), " holds a model of the family ", stored.family,
        ", but ", model.family, " starts from one of the family ", wanted);
  require_same(model, as_family(stored, model), folder);
  if (model.task.any()) {
    return load_without_head(memory, model, *source);
  }
  put_all(memory, [&](const Parameter& each) {
    const std::string name = each.name.substr(each.name.find('.') + 1);
    return source->weights().contains(name) ? source->read(name)
                                            : initial_tensor(reading, each, name, seed);
  });
  return {};
}

}  // namespace bloomery
