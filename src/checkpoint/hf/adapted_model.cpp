// Models with an adapter beside their weights, and with it in them.
#include <cmath>

#include "checkpoint/hf/adapter.h"
#include "checkpoint/hf/adapter_layers.h"
#include "nn/adapter.h"

namespace bloomery {
namespace {

std::string without_ending(const std::string& name, std::string_view ending) {
  return name.substr(0, name.size() - ending.size());
}

class AdaptedModel final : public ModelSource {
 public:
  AdaptedModel(std::unique_ptr<ModelSource> base, Adapter adapter)
      : ModelSource(base->stream()), base_(std::move(base)), adapter_(std::move(adapter)) {
    folder_ = base_->folder();
    record_ = base_->record();
    token_ids_ = base_->token_ids();
    hf_origin_ = base_->hf_origin();
    weights_ = base_->weights();
    check(!record_.model.adapter.enabled, folder_.string(),
          " has an adapter already: merge it first (bloomery convert --to hf)");
    for (AdaptableLayer& layer : adaptable_layers(record_.model)) {
      const std::string name = layer.name;
      layers_.emplace(name, std::move(layer));
    }
    record_.model.adapter = adapter_.options(record_.model);
    add_entries();
  }

  Tensor read(const std::string& name) const override {
    if (name.ends_with(kFirstFactor)) {
      return first_factor(layers_.at(without_ending(name, kFirstFactor)));
    }
    if (name.ends_with(kSecondFactor)) {
      return second_factor(layers_.at(without_ending(name, kSecondFactor)));
    }
    return base_->read(name);
  }

 private:
  void add_entries() {
    const Model model(record_.model, Mesh::single(), DType::fp32);
    for (const Parameter* parameter : model.parameters()) {
      if (is_adapter_parameter(parameter->name)) {
        weights_[parameter->name] = {DType::fp32, parameter->box.global};
      }
    }
    for (const auto& [name, layer] : layers_) {
      for (std::size_t i = 0; i < layer.modules.size(); ++i) {
        check_shapes(layer, i);
      }
    }
  }
  const Adapter::Matrices* matrices(const AdaptableLayer& layer, std::size_t module) const {
    const auto found = adapter_.modules().find(layer.modules[module]);
    return found == adapter_.modules().end() ? nullptr : &found->second;
  }
  void check_shapes(const AdaptableLayer& layer, std::size_t module) const {
    const Adapter::Matrices* const m = matrices(layer, module);
    if (m == nullptr) return;
    Shape stored = layer.weight.parts[module].their_shape;
    if (inputs_first(layer.weight)) std::swap(stored[0], stored[1]);
    const Shape expected{m->b.shape()[0], m->a.shape()[1]};
    check(stored == expected, adapter_.folder().string(), ": the adapter is for a weight ",
          expected, " of ", layer.modules[module], ", but the model's is ", stored);
  }

  // [products, rank, in]; of a smaller rank than the largest, with zeros behind.
  Tensor first_factor(const AdaptableLayer& layer) const {
    const Shape shape = weights_.at(layer.name + std::string(kFirstFactor)).shape;
    std::vector<float> all(static_cast<std::size_t>(shape.numel()), 0);
    auto next = all.begin();
    for (std::size_t i = 0; i < layer.modules.size(); ++i) {
      if (const Adapter::Matrices* const m = matrices(layer, i)) {
        const std::vector<float> own = m->a.to_host<float>(*stream_);
        std::copy(own.begin(), own.end(), next);
        next += shape[1] * shape[2];
      }
    }
    return Tensor::from_host(*stream_, all, shape);
  }

  // Their rows in our order. A module of another rank than the largest has another factor, which
  // goes into its rows.
  Tensor second_factor(const AdaptableLayer& layer) const {
    const AdapterOptions& o = record_.model.adapter;
    const TensorMap map = with_inputs(layer.weight, o.rank);
    std::vector<Tensor> parts;
    for (std::size_t i = 0; i < map.parts.size(); ++i) {
      const Shape& shape = map.parts[i].their_shape;
      std::vector<float> own(static_cast<std::size_t>(shape.numel()), 0);
      if (const Adapter::Matrices* const m = matrices(layer, i)) {
        put_rows(*m, inputs_first(map), own);
      }
      parts.push_back(Tensor::from_host(*stream_, own, shape));
    }
    return to_ours(*stream_, map, parts);
  }
  void put_rows(const Adapter::Matrices& m, bool transposed, std::vector<float>& to) const {
    AdapterOptions own = record_.model.adapter;
    own.rank = m.a.shape()[0];
    const double factor = own.scale() / record_.model.adapter.scale();
    const auto out = static_cast<std::size_t>(m.b.shape()[0]);
    const auto rank = static_cast<std::size_t>(own.rank);
    const auto width = static_cast<std::size_t>(record_.model.adapter.rank);
    const std::vector<float> b = m.b.to_host<float>(*stream_);
    for (std::size_t row = 0; row < out; ++row) {
      for (std::size_t j = 0; j < rank; ++j) {
        to[transposed ? j * out + row : row * width + j] =
            static_cast<float>(factor * b[row * rank + j]);
      }
    }
  }

  const std::unique_ptr<ModelSource> base_;
  const Adapter adapter_;
  std::map<std::string, AdaptableLayer> layers_;  // by our names
};

class MergedModel final : public ModelSource {
 public:
  explicit MergedModel(std::unique_ptr<ModelSource> adapted)
      : ModelSource(adapted->stream()), adapted_(std::move(adapted)) {
    folder_ = adapted_->folder();
    record_ = adapted_->record();
    token_ids_ = adapted_->token_ids();
    hf_origin_ = adapted_->hf_origin();
    weights_ = adapted_->weights();
    std::erase_if(weights_, [](const auto& each) { return is_adapter_parameter(each.first); });
    record_.model = without_adapter(record_.model);
  }

  Tensor read(const std::string& name) const override {
    const Tensor weight = adapted_->read(name);
    constexpr std::string_view kEnding = ".weight";
    if (!name.ends_with(kEnding)) return weight;
    const std::string layer = without_ending(name, kEnding);
    const std::string a = layer + std::string(kFirstFactor), b = layer + std::string(kSecondFactor);
    if (!adapted_->weights().contains(b)) return weight;
    return sum(weight, layer, adapted_->read(a), adapted_->read(b));
  }

 private:
  Tensor sum(const Tensor& weight, const std::string& layer, const Tensor& a,
             const Tensor& b) const {
    const ModelOptions& model = adapted_->record().model;
    Shape out;
    for (int i = 0; i + 1 < weight.shape().rank(); ++i) out.append(weight.shape()[i]);
    const RowParts parts = adapter_for(model, layer)->rows(out);
    const std::int64_t in = weight.shape().back(), rank = b.shape().back();
    const double scale = model.adapter.scale();
    const std::vector<float> first = a.to_host<float>(*stream_),
                             second = b.to_host<float>(*stream_);
    return dispatch_floating(weight.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      std::vector<T> values = weight.to_host<T>(*stream_);
      std::vector<double> row(static_cast<std::size_t>(in));
      for (std::int64_t r = 0; r < weight.shape().rows(); ++r) {
        const int place = parts.place(r);
        if (place < 0) continue;
        std::fill(row.begin(), row.end(), 0.0);
        for (std::int64_t j = 0; j < rank; ++j) {
          const double factor = scale * second[static_cast<std::size_t>(r * rank + j)];
          const float* const line = first.data() + (place * rank + j) * in;
          for (std::size_t i = 0; i < row.size(); ++i) row[i] += factor * line[i];
        }
        T* const target = values.data() + r * in;
        for (std::size_t i = 0; i < row.size(); ++i) {
          target[i] = T(static_cast<Accumulator<T>>(
              static_cast<double>(static_cast<Accumulator<T>>(target[i])) + row[i]));
        }
      }
      return Tensor::from_host(*stream_, values, weight.shape());
    });
  }

  const std::unique_ptr<ModelSource> adapted_;
};

}  // namespace

std::unique_ptr<ModelSource> with_adapter(std::unique_ptr<ModelSource> model, Adapter adapter) {
  return std::make_unique<AdaptedModel>(std::move(model), std::move(adapter));
}

std::unique_ptr<ModelSource> merged(std::unique_ptr<ModelSource> model) {
  return std::make_unique<MergedModel>(std::move(model));
}

}  // namespace bloomery
