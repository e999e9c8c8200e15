#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/megatron/foreign_write.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;
using Dict = PyValue::Dict;
using Kind = MegatronExporter::Kind;

constexpr const char* kWords = "language_model.embedding.word_embeddings.weight";
constexpr std::string_view kLanguageModel = "language_model.",
                           kEmbedding = "language_model.embedding.";

std::string digits(std::int64_t number, std::size_t width) {
  const std::string text = std::to_string(number);
  return std::string(width - std::min(width, text.size()), '0') + text;
}

// The files of one rank.
class RankWriter {
 public:
  RankWriter(const MegatronExporter& model, int stage, int rank)
      : model_(model), stage_(stage), rank_(rank), names_(model.names(stage)) {
    if (stage == 0) {
      return;
    }
    if (model.num_stacks() == 2 && stage == model.first_stage(1)) {
      std::vector<std::string> embedding = model.names(0);
      std::erase_if(embedding,
                    [](const std::string& name) { return !name.starts_with(kEmbedding); });
      names_.insert(names_.begin(), embedding.begin(), embedding.end());
    } else if (model.tied() && stage == model.layout().pipeline - 1) {
      // The last stage of a tied model holds the embedding once more.
      copied_for_head_ =
          std::ranges::find_if_not(
              names_, [](const std::string& name) { return name.starts_with(kLanguageModel); }) -
          names_.begin();
      names_.insert(names_.begin() + *copied_for_head_, kWords);
    }
  }

  PyValue contents() const {
    Dict file;
    model_.add_client_state(file, false);
    file.emplace_back("model", weights());
    if (model_.has_states()) {
      file.emplace_back("optimizer", model_.record().dtype == DType::fp32
                                         ? PyValue(inner_optimizer())
                                         : PyValue(mixed_optimizer()));
      file.emplace_back("opt_param_scheduler", model_.scheduler());
    }
    return file;
  }

 private:
  PyValue tensor(const std::string& name, const Kind& kind) const {
    return model_.tensor(name, rank_, kind);
  }

  // The numbers of layers count from this stage's first one of their stack.
  std::string local_name(const std::string& name) const {
    const auto layer = layer_of_name(name);
    if (!layer) {
      return name;
    }
    const std::string stack = name.substr(0, name.find(".layers."));
    const auto first = std::ranges::find_if(names_, [&](const std::string& other) {
      return other.starts_with(stack) && layer_of_name(other);
    });
    return with_layer(name, *layer - *layer_of_name(*first));
  }

  Dict weights() const {
    Dict embedding;
    std::vector<std::pair<std::string, Dict>> language, others;
    const auto put = [](auto& parts, const std::string& name, const PyValue& value) {
      const std::string part = name.substr(0, name.find('.'));
      if (parts.empty() || parts.back().first != part) {
        parts.emplace_back(part, Dict{});
      }
      parts.back().second.emplace_back(name.substr(part.size() + 1), value);
    };
    for (std::ptrdiff_t i = 0; i < std::ssize(names_); ++i) {
      const std::string name = local_name(names_[static_cast<std::size_t>(i)]);
      const PyValue value = tensor(names_[static_cast<std::size_t>(i)], Kind::computed);
      if (i == copied_for_head_) {
        others.emplace_back("word_embeddings_for_head", Dict{{"weight", value}});
      } else if (name.starts_with(kEmbedding)) {
        const std::string key = name.substr(kEmbedding.size());
        embedding.emplace_back(key.substr(0, key.find('.')),
                               Dict{{key.substr(key.find('.') + 1), value}});
      } else if (name.starts_with(kLanguageModel)) {
        put(language, name.substr(kLanguageModel.size()), value);
      } else {
        put(others, name, value);
      }
    }
    Dict inner;
    if (!embedding.empty()) {
      inner.emplace_back("embedding", embedding);
    }
    inner.insert(inner.end(), language.begin(), language.end());
    Dict model{{"language_model", inner}};
    model.insert(model.end(), others.begin(), others.end());
    return model;
  }

  std::vector<std::string> group(bool decays) const {
    std::vector<std::string> names;
    for (const std::string& name : names_) {
      if (MegatronExporter::decays(name) == decays) {
        names.push_back(name);
      }
    }
    return names;
  }

  Dict inner_optimizer() const {
    Dict state;
    PyValue::List groups;
    const auto steps = static_cast<float>(model_.optimizer_steps());
    std::int64_t index = 0;
    for (const bool decays : {true, false}) {
      PyValue::List indices;
      for (const std::string& name : group(decays)) {
        Dict each{{"step", single_number(steps)}};
        for (const StateTensor& declared : model_.states()) {
          each.emplace_back(declared.foreign, tensor(name, Kind::of(declared)));
        }
        state.emplace_back(index, each);
        indices.emplace_back(index++);
      }
      if (!indices.empty()) {
        groups.emplace_back(model_.parameter_group(decays, false, indices));
      }
    }
    return {{"state", state}, {"param_groups", groups}};
  }

  Dict mixed_optimizer() const {
    Dict optimizer{{"optimizer", inner_optimizer()}};
    if (model_.record().dtype == DType::fp16) {
      const RunState::Scale& scale = model_.run()->loss_scale;
      optimizer.emplace_back(
          "grad_scaler", Dict{{"scale", single_number(static_cast<float>(scale.scale), Shape{1})},
                              {"growth_tracker", scale.clean_steps},
                              {"hysteresis_tracker", scale.tolerance_left}});
    }
    PyValue::List copies;
    for (const bool decays : {true, false}) {
      PyValue::List tensors;
      for (const std::string& name : group(decays)) {
        tensors.push_back(tensor(name, Kind::exact));
      }
      copies.emplace_back(tensors);
    }
    optimizer.emplace_back("fp32_from_fp16_params", copies);
    return optimizer;
  }

  const MegatronExporter& model_;
  int stage_, rank_;
  std::vector<std::string> names_;
  std::optional<std::ptrdiff_t> copied_for_head_;  // place of its name
};

}  // namespace

void write_megatron(const ModelSource& source, const fs::path& folder, const ForeignLayout& layout,
                    bool release) {
  const MegatronExporter model(source, layout, release);
  check(!model.has_experts(),
        "Megatron's own checkpoints have no mixtures of experts; convert --to deepspeed");
  release = release || model.iteration() == 0;
  const std::string name = release ? "release" : "iter_" + digits(model.iteration(), 7);
  for (int stage = 0; stage < layout.pipeline; ++stage) {
    std::vector<TorchFileToWrite> files;
    for (int rank = 0; rank < layout.tensor; ++rank) {
      const fs::path place =
          folder / name /
          concat("mp_rank_", digits(rank, 2), layout.pipeline > 1 ? "_" + digits(stage, 3) : "");
      fs::create_directories(place);
      files.push_back({place / "model_optim_rng.pt", RankWriter(model, stage, rank).contents()});
    }
    write_torch_files(files);
  }
  write_file(folder / "latest_checkpointed_iteration.txt",
             release ? name : std::to_string(model.iteration()));
}

}  // namespace bloomery
