#include "engine/llama/llama_model.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <filesystem>
#include <fstream>
#include <limits>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <ggml-backend.h>

#include "core/log/log.hpp"
#include "engine/llama/model/cpu_check.hpp"
#include "engine/llama/model/gguf_check.hpp"
#include "engine/llama/model/llama_log.hpp"
#include "json/json.hpp"

namespace sluice {
namespace {

/// Below this many parameters, a second thread costs more than it saves.
constexpr std::uint64_t kTinyModel = 50'000'000;
constexpr std::uint32_t kCellsPadding = 256;  // llama.cpp rounds a sequence's cells up to this
constexpr std::uint32_t kLeastContext = 512;
/// How many tokens are computed together. More would take memory and save no time. ggml's attention
/// processes 64 tokens of a sequence at once, and this number gives a multiple of 64 to each of 1,
/// 2, 4 or 8 sequences.
constexpr std::uint32_t kComputedTogether = 512;

std::unexpected<Error> refuse(ModelFault fault, std::string message) {
  return fail(static_cast<int>(fault), std::move(message));
}

std::string number(std::uint64_t value) {
  std::string text;
  append_number(text, value);
  return text;
}

/// Bytes of memory that can be used without swapping, limited by the machine and the control group.
/// The largest possible number if the system does not say.
std::uint64_t available_memory() {
  std::uint64_t available = std::numeric_limits<std::uint64_t>::max();
  std::ifstream meminfo("/proc/meminfo");
  for (std::string key; meminfo >> key;) {
    std::uint64_t kib = 0;
    if (key == "MemAvailable:" && meminfo >> kib) available = kib * 1024;
    meminfo.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  std::ifstream limit_file("/sys/fs/cgroup/memory.max");
  std::ifstream used_file("/sys/fs/cgroup/memory.current");
  std::uint64_t limit = 0;
  std::uint64_t used = 0;
  if (limit_file >> limit && used_file >> used) {
    available = std::min(available, limit > used ? limit - used : 0);
  }
  return available;
}

std::uint64_t metadata_number(const llama_model* model, const std::string& key,
                              std::uint64_t absent) {
  std::array<char, 32> text{};
  const int length = llama_model_meta_val_str(model, key.c_str(), text.data(), text.size());
  std::uint64_t value = 0;
  if (length <= 0 || std::from_chars(text.data(), text.data() + length, value).ec != std::errc()) {
    return absent;
  }
  return value;
}

std::string metadata_text(const llama_model* model, const char* key) {
  std::array<char, 256> text{};
  const int length = llama_model_meta_val_str(model, key, text.data(), text.size());
  return length < 0 ? std::string() : std::string(text.data());
}

/// Bytes that the keys and values (16-bit floats) of one token take.
std::uint64_t bytes_per_token(const llama_model* model) {
  const std::string arch = metadata_text(model, "general.architecture");
  const auto heads = static_cast<std::uint64_t>(std::max(llama_model_n_head(model), 1));
  const auto width = static_cast<std::uint64_t>(llama_model_n_embd(model));
  const std::uint64_t key = metadata_number(model, arch + ".attention.key_length", width / heads);
  const std::uint64_t value =
      metadata_number(model, arch + ".attention.value_length", width / heads);
  return static_cast<std::uint64_t>(llama_model_n_layer(model)) *
         static_cast<std::uint64_t>(std::max(llama_model_n_head_kv(model), 0)) * (key + value) * 2;
}

std::uint64_t padded(std::uint64_t tokens) {
  return (tokens + kCellsPadding - 1) / kCellsPadding * kCellsPadding;
}

bool has_device() {
  for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    if (ggml_backend_dev_type(ggml_backend_dev_get(i)) != GGML_BACKEND_DEVICE_TYPE_CPU) return true;
  }
  return false;
}

std::uint32_t slots_of(const LlamaOptions& options) {
  return std::clamp<std::uint32_t>(options.slots, 1,
                                   static_cast<std::uint32_t>(llama_max_parallel_sequences()));
}

bool runs_on_cpu(const LlamaOptions& options) {
  return options.backend == "cpu" || options.gpu_layers == 0 || !has_device();
}

/// The most tokens that one sequence may have: as many as requested, or as fit.
Result<std::uint32_t> context_size(const LlamaOptions& options, const llama_model* model) {
  const std::uint32_t slots = slots_of(options);
  const std::uint64_t trained =
      static_cast<std::uint64_t>(std::max(llama_model_n_ctx_train(model), 1));
  const std::uint64_t wanted = options.context_tokens != 0 ? options.context_tokens : trained;
  if (wanted > trained) {
    log_warning("the context is longer than the model was trained for",
                {{"context", static_cast<std::int64_t>(wanted)},
                 {"trained", static_cast<std::int64_t>(trained)}});
  }
  if (padded(wanted) * slots > std::numeric_limits<std::int32_t>::max()) {
    return refuse(ModelFault::no_memory, "a context of " + number(wanted) + " tokens for each of " +
                                             number(slots) +
                                             " slots is too large; use fewer of either");
  }
  if (!runs_on_cpu(options)) return static_cast<std::uint32_t>(wanted);
  const std::uint64_t each = std::max<std::uint64_t>(bytes_per_token(model) * slots, 1);
  const std::uint64_t available = available_memory();
  if (options.context_tokens == 0) {
    const std::uint64_t fits = available / 2 / each;
    if (fits < wanted && fits >= kLeastContext) {
      log_warning("the context is smaller than the model allows, because no more fits into memory",
                  {{"context", static_cast<std::int64_t>(fits)},
                   {"trained", static_cast<std::int64_t>(trained)}});
      return static_cast<std::uint32_t>(fits);
    }
  }
  if (padded(wanted) > available / each) {
    return refuse(ModelFault::no_memory, "not enough memory for the context: " + number(slots) +
                                             " slots of " + number(wanted) + " tokens need " +
                                             number((padded(wanted) * each) >> 20U) + " MiB and " +
                                             number(available >> 20U) +
                                             " MiB are free; use a smaller context or fewer slots");
  }
  return static_cast<std::uint32_t>(wanted);
}

Result<std::vector<ggml_backend_dev_t>> choose_devices(const std::string& backend) {
  if (backend == "cpu" || backend == "auto") return std::vector<ggml_backend_dev_t>{nullptr};
  if (ggml_backend_dev_t device = ggml_backend_dev_by_name(backend.c_str())) {
    return std::vector<ggml_backend_dev_t>{device, nullptr};
  }
  std::string known = "auto, cpu";
  for (const std::string& name : llama_devices()) known += ", " + name;
  return refuse(ModelFault::no_device,
                "there is no device \"" + backend + "\" to run the model on; use one of: " + known);
}

struct Progress {
  const std::function<bool(float)>& report;
  bool given_up = false;
};

Result<std::unique_ptr<llama_model, LlamaDeleter>> load_weights(
    const LlamaOptions& options, std::vector<ggml_backend_dev_t>& devices,
    const std::function<bool(float)>& report) {
  Progress progress{report};
  llama_model_params params = llama_model_default_params();
  params.n_gpu_layers = options.backend == "cpu" ? 0 : options.gpu_layers;
  if (options.backend != "auto") params.devices = devices.data();
  params.progress_callback_user_data = &progress;
  params.progress_callback = [](float done, void* user) {
    auto* const self = static_cast<Progress*>(user);
    self->given_up = !self->report(done);
    return !self->given_up;
  };
  std::unique_ptr<llama_model, LlamaDeleter> model(
      llama_model_load_from_file(options.model_path.c_str(), params));
  if (model != nullptr) return model;
  if (progress.given_up) return refuse(ModelFault::none, "loading was cancelled");
  const std::string why = LlamaGuard::last_error();
  const auto has = [&](std::string_view part) { return why.find(part) != std::string::npos; };
  const ModelFault fault = has("unknown model architecture") || has("unsupported")
                               ? ModelFault::unsupported
                           : has("allocate") ? ModelFault::no_memory
                                             : ModelFault::corrupt;
  return refuse(
      fault, options.model_path + ": the model cannot be loaded" + (why.empty() ? "" : ": " + why));
}

Result<void> check_kind(const llama_model* model) {
  const auto refused = [](std::string_view what) {
    return refuse(ModelFault::unsupported, "this model " + std::string(what));
  };
  if (llama_model_has_encoder(model) || !llama_model_has_decoder(model)) {
    return refused("does not generate text by continuing it; use a decoder model");
  }
  if (llama_model_is_diffusion(model)) return refused("generates by diffusion, not token by token");
  if (llama_vocab_type(llama_model_get_vocab(model)) == LLAMA_VOCAB_TYPE_NONE) {
    return refused("has no vocabulary");
  }
  return {};
}

llama_flash_attn_type flash_attention(LlamaOptions::FlashAttention wanted) {
  switch (wanted) {
    case LlamaOptions::FlashAttention::on:
      return LLAMA_FLASH_ATTN_TYPE_ENABLED;
    case LlamaOptions::FlashAttention::off:
      return LLAMA_FLASH_ATTN_TYPE_DISABLED;
    case LlamaOptions::FlashAttention::automatic:
      break;
  }
  return LLAMA_FLASH_ATTN_TYPE_AUTO;
}

Result<LoadedModel> load(const LlamaOptions& options, const std::function<bool(float)>& progress) {
  if (auto checked = check_gguf_file(options.model_path); !checked) {
    return std::unexpected(std::move(checked).error());
  }
  auto devices = choose_devices(options.backend);
  if (!devices) return std::unexpected(std::move(devices).error());

  LoadedModel loaded;
  auto model = load_weights(options, *devices, progress);
  if (!model) return std::unexpected(std::move(model).error());
  loaded.model = std::move(*model);
  if (auto kind = check_kind(loaded.model.get()); !kind) {
    return std::unexpected(std::move(kind).error());
  }
  loaded.slots = slots_of(options);
  loaded.batch_tokens = std::clamp<std::uint32_t>(options.batch_tokens, 16, 8192);
  const bool on_cpu = runs_on_cpu(options);
  const auto context_tokens = context_size(options, loaded.model.get());
  if (!context_tokens) return std::unexpected(context_tokens.error());

  const bool tiny = llama_model_n_params(loaded.model.get()) < kTinyModel;
  const std::uint32_t cores = std::max(std::thread::hardware_concurrency(), 1U);
  const std::uint32_t threads = options.threads != 0 ? options.threads : tiny ? 1 : cores;
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<std::uint32_t>(padded(*context_tokens) * loaded.slots);
  params.n_seq_max = loaded.slots;
  params.n_batch = loaded.batch_tokens + loaded.slots;
  params.n_ubatch = std::min(params.n_batch, std::max(kComputedTogether, loaded.slots));
  params.n_threads = static_cast<std::int32_t>(threads);
  params.n_threads_batch =
      static_cast<std::int32_t>(options.batch_threads != 0 ? options.batch_threads : threads);
  params.flash_attn_type = flash_attention(options.flash_attention);
  params.offload_kqv = !on_cpu;
  params.op_offload = !on_cpu;
  params.swa_full = true;  // otherwise the beginning of a sequence could not be reused
  params.no_perf = true;
  loaded.context.reset(llama_init_from_model(loaded.model.get(), params));
  if (loaded.context == nullptr) {
    const std::string why = LlamaGuard::last_error();
    return refuse(ModelFault::no_memory,
                  "not enough memory for the context of " + number(loaded.slots) + " slots of " +
                      number(*context_tokens) + " tokens" + (why.empty() ? "" : ": " + why) +
                      "; use a smaller context or fewer slots");
  }
  if (llama_get_memory(loaded.context.get()) == nullptr) {
    return refuse(ModelFault::unsupported,
                  "this model keeps no memory of previous tokens and cannot generate text");
  }
  loaded.context_tokens = std::min(*context_tokens, llama_n_ctx_seq(loaded.context.get()));
  loaded.can_copy = !llama_model_is_recurrent(loaded.model.get()) &&
                    !llama_model_is_hybrid(loaded.model.get()) &&
                    llama_model_n_swa(loaded.model.get()) == 0;
  loaded.name = metadata_text(loaded.model.get(), "general.name");
  if (loaded.name.empty()) {
    loaded.name = std::filesystem::path(options.model_path).stem().string();
  }
  return loaded;
}

}  // namespace

Result<LoadedModel> load_model(const LlamaOptions& options,
                               const std::function<bool(float)>& progress) {
  if (auto runs = check_cpu(cpu_features()); !runs) return std::unexpected(runs.error());
  initialize_llama();
  const LlamaGuard guard;
  try {
    return load(options, progress);
  } catch (const std::bad_alloc&) {
    return refuse(ModelFault::no_memory, "not enough memory for the model");
  } catch (const std::exception& error) {
    return refuse(ModelFault::corrupt,
                  options.model_path + ": the model cannot be loaded: " + error.what());
  }
}

std::vector<std::string> llama_devices() {
  initialize_llama();
  std::vector<std::string> names;
  for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    ggml_backend_dev_t device = ggml_backend_dev_get(i);
    if (ggml_backend_dev_type(device) != GGML_BACKEND_DEVICE_TYPE_CPU) {
      names.emplace_back(ggml_backend_dev_name(device));
    }
  }
  return names;
}

Result<void> check_llama_device(const std::string& backend) {
  initialize_llama();
  if (auto devices = choose_devices(backend); !devices) {
    return std::unexpected(std::move(devices).error());
  }
  return {};
}

Result<void> check_llama_context(const LlamaOptions& options) {
  if (!check_cpu(cpu_features())) return {};
  initialize_llama();
  const LlamaGuard guard;
  try {
    llama_model_params params = llama_model_default_params();
    params.no_alloc = true;
    params.load_mode = LLAMA_LOAD_MODE_NONE;
    params.n_gpu_layers = 0;
    const std::unique_ptr<llama_model, LlamaDeleter> model(
        llama_model_load_from_file(options.model_path.c_str(), params));
    if (model == nullptr) return {};
    if (const auto size = context_size(options, model.get()); !size) {
      return std::unexpected(size.error());
    }
  } catch (const std::exception&) {
    // Loading the model tells.
  }
  return {};
}

}  // namespace sluice
