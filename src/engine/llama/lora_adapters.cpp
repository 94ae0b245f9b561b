#include "engine/llama/lora_adapters.hpp"

#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <ggml.h>
#include <gguf.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "engine/llama/model/gguf_check.hpp"
#include "engine/llama/model/llama_log.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

struct AdapterDeleter {
  void operator()(llama_adapter_lora* adapter) const { llama_adapter_lora_free(adapter); }
};
struct GgufDeleter {
  void operator()(gguf_context* file) const { gguf_free(file); }
};
struct TensorsDeleter {
  void operator()(ggml_context* tensors) const { ggml_free(tensors); }
};
struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

std::unexpected<Error> refuse_adapter(const std::string& why) {
  return fail(kInvalidParams, "Invalid params: this is no LoRA adapter for this model: " + why);
}

/// The file from its beginning. Null: the system has no descriptors left.
File open_again(const NamedFile& file) {
  const std::string again = "/proc/self/fd/" + std::to_string(file.descriptor->get());
  return File(std::fopen(again.c_str(), "rbe"));
}

/// Finds what llama.cpp would take, and then fail to compute with.
Result<void> check_tensors(std::FILE* file) {
  ggml_context* made = nullptr;
  const std::unique_ptr<gguf_context, GgufDeleter> read(
      gguf_init_from_file_ptr(file, {.no_alloc = true, .ctx = &made}));
  const std::unique_ptr<ggml_context, TensorsDeleter> tensors(made);
  if (read == nullptr || tensors == nullptr) return refuse_adapter("it cannot be read");
  for (ggml_tensor* each = ggml_get_first_tensor(made); each != nullptr;
       each = ggml_get_next_tensor(made, each)) {
    const bool is_taken = each->type == GGML_TYPE_F32 || each->type == GGML_TYPE_F16 ||
                          each->type == GGML_TYPE_BF16 || each->type == GGML_TYPE_Q8_0;
    if (!is_taken) return refuse_adapter("its weights are not F32, F16, BF16 or Q8_0");
    const std::string_view name = ggml_get_name(each);
    if (each->ne[2] != 1 || each->ne[3] != 1 || name.contains("_exps")) {
      return refuse_adapter("adapters of experts are not supported");
    }
  }
  return {};
}

Result<llama_adapter_lora*> read_adapter(llama_model& model, const NamedFile& file) {
  struct stat about{};
  if (::fstat(file.descriptor->get(), &about) != 0) return refuse_adapter("it cannot be read");
  {
    std::ifstream in("/proc/self/fd/" + std::to_string(file.descriptor->get()), std::ios::binary);
    const auto size = static_cast<std::uint64_t>(about.st_size);
    if (const auto checked = check_gguf(in, size); !checked) {
      return refuse_adapter(checked.error().message);
    }
  }
  const LlamaGuard guard;
  try {
    const File checked = open_again(file);
    const File read = open_again(file);
    if (checked == nullptr || read == nullptr) return refuse_adapter("it cannot be read");
    if (const Result<void> fits = check_tensors(checked.get()); !fits) {
      return std::unexpected(fits.error());
    }
    std::unique_ptr<llama_adapter_lora, AdapterDeleter> adapter(
        llama_adapter_lora_init_from_file_ptr(&model, read.get()));
    if (adapter == nullptr) {
      const std::string why = LlamaGuard::last_error();
      return refuse_adapter(why.empty() ? "llama.cpp does not say why" : why);
    }
    if (llama_adapter_get_alora_n_invocation_tokens(adapter.get()) != 0) {
      return refuse_adapter("activated adapters (aLoRA) are not supported");
    }
    return adapter.release();  // the model frees it
  } catch (const std::exception& error) {
    return refuse_adapter(error.what());
  }
}

}  // namespace

Result<void> LoraAdapters::load(llama_model& model, const LoadLora& wanted) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = adapters_.find(wanted.name); known != adapters_.end()) {
      const LoraAdapter& adapter = *known->second;
      if (adapter.path == wanted.file.path && adapter.scale == wanted.scale) return {};
      return fail(kInvalidParams, "Invalid params: another adapter has this name");
    }
    if (adapters_.size() >= LoadLora::kMost) {
      return fail(kInvalidParams, "Invalid params: there are " + std::to_string(LoadLora::kMost) +
                                      " adapters, and more are not loaded");
    }
  }
  const Result<llama_adapter_lora*> adapter = read_adapter(model, wanted.file);
  if (!adapter) return std::unexpected(adapter.error());
  const std::lock_guard lock(mutex_);
  adapters_.emplace(wanted.name,
                    std::make_unique<const LoraAdapter>(LoraAdapter{
                        .adapter = *adapter, .scale = wanted.scale, .path = wanted.file.path}));
  return {};
}

const LoraAdapter* LoraAdapters::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = adapters_.find(name);
  return found == adapters_.end() ? nullptr : found->second.get();
}

}  // namespace sluice
