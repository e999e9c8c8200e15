#include "generate/loaded_model.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "checkpoint/hf/adapter.h"
#include "models/linear_weights.h"
#include "parallel/head_loss.h"

namespace bloomery {
namespace {

// A copy of the numbers in another type. Through fp32, unless both are fp64.
Tensor converted(Stream& stream, const Tensor& tensor, DType dtype) {
  Tensor result = Tensor::empty(stream, dtype, tensor.shape());
  dispatch_floating(tensor.dtype(), [&](auto from) {
    dispatch_floating(dtype, [&](auto to) {
      using From = typename decltype(from)::type;
      using To = typename decltype(to)::type;
      const auto* source = static_cast<const From*>(tensor.data());
      auto* target = static_cast<To*>(result.data());
      stream.device().pool().for_ranges(
          tensor.numel(), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) {
              target[i] =
                  To(static_cast<Accumulator<To>>(static_cast<Accumulator<From>>(source[i])));
            }
          });
    });
  });
  return result;
}

// `host` is on the CPU and has the parameter's dtype; rows of padding become zero.
void place(Stream& stream, Parameter& parameter, const Tensor& host) {
  parameter.value = Tensor::empty(stream, host.dtype(), parameter.local_shape);
  stream.copy(parameter.value.data(), host.data(), host.bytes());
  if (const std::size_t padding = parameter.value.bytes() - host.bytes(); padding > 0) {
    stream.fill(static_cast<std::byte*>(parameter.value.data()) + host.bytes(), 0, padding);
  }
  stream.synchronize();  // the host's numbers end here
}

// Makes the codes of a weight that is on the CPU.
void quantize(Stream& stream, QuantizedWeights& quantized, const Parameter& parameter,
              const Tensor& host) {
  Tensor numbers = host;
  if (stream.on_cuda()) {
    numbers = Tensor::empty(stream, host.dtype(), host.shape());
    stream.copy(numbers.data(), host.data(), host.bytes());
  }
  quantized.put_rows(parameter, 0, numbers);
  stream.synchronize();  // the host's numbers end here
}

bool separates_documents(const RunState* state) {
  const auto options =
      nlohmann::json::parse(state != nullptr ? state->options : "{}", nullptr, false);
  return options.is_object() && options.value("reset-attention-mask", nlohmann::json()) == true;
}

// How many ranks have this rank's GPU or, on CPUs, its machine.
int count_sharing(HostGroup& host, const DeviceOptions& device) {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  const std::string mine =
      device.kind == DeviceKind::cuda ? device_identity(device.index) : std::string(name.data());
  const std::vector<std::string> all = host.gather("devices of ranks", mine);
  return static_cast<int>(std::count(all.begin(), all.end(), mine));
}

ModelOptions for_inference(ModelOptions options) {
  options.vocabulary.padded_in_softmax = false;
  return options;
}

}  // namespace

LoadedModel::LoadedModel(const LoadOptions& options, const Log& log,
                         std::unique_ptr<Communicator> world)
    : device_(std::make_unique<Device>(options.device)),
      stream_(std::make_unique<Stream>(*device_)) {
  const int tensor = options.tensor > 0 ? options.tensor : world->size();
  const MeshDegrees degrees{.tensor = tensor, .data = world->size() / tensor};
  mesh_ = std::make_unique<Mesh>(degrees, std::move(world));
  // Files are read on the CPU. A GPU's weights pass through it, with a few threads of their own.
  std::unique_ptr<Device> host;
  std::unique_ptr<Stream> host_stream;
  if (stream_->on_cuda()) {
    host = std::make_unique<Device>(DeviceOptions{.num_threads = options.device.num_threads});
    host_stream = std::make_unique<Stream>(*host);
  }
  Stream& reading = host_stream ? *host_stream : *stream_;
  const std::unique_ptr<ModelSource> source = open(reading, options, log);
  folder_ = source->folder();
  check(!source->record().model.task.any(), folder_.string(),
        " has the head of a task in place of one for tokens: finetune --task NAME --load ",
        folder_.string(), " --epochs 0 evaluates it");
  token_ids_ = source->token_ids();
  separate_documents_ = separates_documents(source->state());
  tokenizer_options_ = names_tokenizer(options.tokenizer) ? std::optional(options.tokenizer)
                                                          : source->record().tokenizer;
  dtype_ = options.dtype.value_or(stream_->on_cuda() ? source->record().dtype : DType::fp32);
  model_ = std::make_unique<Model>(for_inference(source->record().model), *mesh_, dtype_);
  if (options.quantized != QuantizedFormat::none) {
    quantized_ = std::make_unique<QuantizedWeights>(*stream_, options.quantized, dtype_,
                                                    linear_weights(*model_));
  }
  load_weights(*source);
  ranks_on_device_ = count_sharing(mesh_->host(), device_->options());
}

// The first rank chooses among the checkpoints of a folder, and checks all of it; the others open
// the same one.
std::unique_ptr<ModelSource> LoadedModel::open(Stream& reading, const LoadOptions& options,
                                               const Log& log) {
  HostGroup& host = mesh_->host();
  std::unique_ptr<ModelSource> source;
  if (host.rank() == 0) {
    source = open_model(reading, options.path, log);
  }
  const std::string folder =
      source ? std::filesystem::absolute(source->folder()).string() : std::string();
  const std::string chosen = host.broadcast("folder of the model", folder, 0);
  if (host.rank() != 0) {
    source = open_model(reading, chosen, log);
  }
  if (!options.adapter.empty()) {
    source = with_adapter(std::move(source), Adapter(reading, options.adapter));
  }
  if (options.merges_adapter && source->record().model.adapter.enabled) {
    source = merged(std::move(source));
  }
  return source;
}

void LoadedModel::load_weights(const ModelSource& source) {
  for (Parameter* parameter : model_->parameters()) {
    const bool has_codes = quantized_ && quantized_->find(*parameter) != nullptr;
    Tensor weight = source.read_part(
        parameter->name, has_codes ? QuantizedWeights::whole_rows(*parameter) : parameter->box);
    if (weight.dtype() != dtype_) {
      // On the CPU the result belongs to this model's own stream, else to the reader's.
      weight = converted(stream_->on_cuda() ? source.stream() : *stream_, weight, dtype_);
    }
    if (has_codes) {
      quantize(*stream_, *quantized_, *parameter, weight);
    } else if (!stream_->on_cuda() && weight.shape() == parameter->local_shape) {
      parameter->value = std::move(weight);
    } else {
      place(*stream_, *parameter, weight);
    }
  }
}

const Tokenizer& LoadedModel::tokenizer() {
  if (!tokenizer_) {
    check(tokenizer_options_.has_value(), folder_.string(),
          " does not say what tokenizer the model has; give --tokenizer PATH, or --tokenizer-type "
          "with its files");
    try {
      tokenizer_ = load_tokenizer(*tokenizer_options_);
    } catch (const Error& error) {
      throw Error(concat(error.what(), "; the model's tokenizer can be given with --tokenizer"));
    }
  }
  return *tokenizer_;
}

EncodeOptions LoadedModel::encode_options() const {
  EncodeOptions encode = text_encoding(tokenizer_options_.value_or(TokenizerOptions()));
  if (has_encoder()) {
    encode.add_special_tokens = token_ids_.decoder_start.has_value();
    encode.is_prompt = false;
  }
  return encode;
}

std::optional<TokenId> LoadedModel::end_of_document() {
  if (tokenizer_options_) {
    const SpecialTokens& special = tokenizer().special();
    if (const auto end = special.eod ? special.eod : special.eos) {
      return end;
    }
  }
  return token_ids_.eos ? std::optional(static_cast<TokenId>(*token_ids_.eos)) : std::nullopt;
}

std::vector<TokenId> LoadedModel::eos_ids() {
  std::vector<TokenId> eos_ids;
  const auto add = [&](std::optional<std::int64_t> token) {
    if (token && *token >= 0 && *token < options().vocabulary.size &&
        std::find(eos_ids.begin(), eos_ids.end(), *token) == eos_ids.end()) {
      eos_ids.push_back(static_cast<TokenId>(*token));
    }
  };
  add(end_of_document());
  if (has_encoder()) {
    add(tokenizer().find("[EOS]"));
  }
  add(token_ids_.eos);
  const auto file = folder_ / "generation_config.json";
  if (!std::filesystem::exists(file)) {
    return eos_ids;
  }
  const auto config = nlohmann::json::parse(read_file(file), nullptr, false);
  check(config.is_object(), file.string(), " is not a JSON object");
  const auto named = config.find("eos_token_id");
  if (named != config.end()) {
    for (const auto& id : named->is_array() ? *named : nlohmann::json::array({*named})) {
      add(id.is_number_integer() ? std::optional(id.get<std::int64_t>()) : std::nullopt);
    }
  }
  return eos_ids;
}

std::vector<std::filesystem::path> LoadedModel::text_folders() const {
  std::vector<std::filesystem::path> folders;
  if (tokenizer_options_ && !tokenizer_options_->path.empty()) {
    const std::filesystem::path path = tokenizer_options_->path;
    folders.push_back(std::filesystem::is_directory(path) ? path : path.parent_path());
  }
  folders.push_back(folder_);
  std::erase_if(folders, [](const auto& path) { return !std::filesystem::is_directory(path); });
  return folders;
}

std::optional<TokenId> LoadedModel::start_of_answer() {
  if (!has_encoder()) {
    return std::nullopt;
  }
  if (token_ids_.decoder_start) {
    return static_cast<TokenId>(*token_ids_.decoder_start);
  }
  const auto named = tokenizer().find("[BOS]");
  return named ? named : tokenizer().special().bos;
}

Context LoadedModel::context(const Batch& batch, Cache* cache) {
  return Context{.stream = *stream_, .mesh = *mesh_, .batch = batch, .cache = cache};
}

Tensor LoadedModel::logits(const Batch& batch) {
  Context context = this->context(batch);
  return logits_of_all_ranks(*stream_, *mesh_, model_->forward(context).stream.data);
}

}  // namespace bloomery
