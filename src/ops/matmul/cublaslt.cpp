#include "ops/matmul/cublaslt.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <limits>
#include <source_location>
#include <sstream>

#include "base/user_cache.h"
#include "device/cuda_check.h"

namespace bloomery {
namespace {

constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;
constexpr int kTimedCandidates = 16;
constexpr int kMaxAlignment = 256;

void check_cublas(cublasStatus_t status, const char* call,
                  const std::source_location& at = std::source_location::current()) {
  check(status == CUBLAS_STATUS_SUCCESS, "cuBLASLt: ", call,
        " failed: ", cublasLtGetStatusString(status), place(at));
}

template <class Value>
void set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute,
         const Value& value) {
  check_cublas(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value),
               "cublasLtMatmulDescSetAttribute");
}

template <class Value>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
         const Value& value) {
  check_cublas(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
               "cublasLtMatmulPreferenceSetAttribute");
}

cudaDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::fp32:
      return CUDA_R_32F;
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::fp16:
      return CUDA_R_16F;
    default:
      throw Error(concat("matmul: dtype ", name(dtype), " is not available on CUDA"));
  }
}

cudaDataType_t input_type(const MatmulKey& key, Fp8Format format) {
  switch (format) {
    case Fp8Format::e4m3:
      return CUDA_R_8F_E4M3;
    case Fp8Format::e5m2:
      return CUDA_R_8F_E5M2;
    default:
      return data_type(key.input);
  }
}

// What a product reads or writes besides its matrices: bias, the values before the activation, and
// scales of operands of 8 bits (the library's A is our b).
void set_pointers(cublasLtMatmulDesc_t description, const Matmul& p) {
  if (p.a_code) {
    set(description, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, p.b_code.inverse_scale.data);
    set(description, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, p.a_code.inverse_scale.data);
  }
  if (p.bias) {
    set(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias.data);
  }
  if (p.before) {
    set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, p.before.data);
  }
}

int common_alignment(const Matmul& p) {
  std::uintptr_t bits = kMaxAlignment;
  for (const void* pointer : {p.a.data, p.b.data, static_cast<const void*>(p.d.data), p.bias.data,
                              static_cast<const void*>(p.before.data)}) {
    bits |= reinterpret_cast<std::uintptr_t>(pointer);
  }
  return 1 << std::countr_zero(bits);
}

bool is_capturing(Stream& stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(cuda_stream(stream), &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

// "cublaslt VERSION WORD..", the words of the opaque algorithm in hexadecimal.
std::string text(const cublasLtMatmulAlgo_t& algorithm) {
  std::ostringstream line;
  line << "cublaslt " << cublasLtGetVersion() << std::hex;
  for (const std::uint64_t word : algorithm.data) {
    line << ' ' << word;
  }
  return line.str();
}

bool parse(const std::string& line, cublasLtMatmulAlgo_t& algorithm) {
  std::istringstream words(line);
  std::string library;
  std::size_t version = 0;
  words >> library >> version >> std::hex;
  for (std::uint64_t& word : algorithm.data) {
    words >> word;
  }
  return words && library == "cublaslt" && version == cublasLtGetVersion();
}

// "NVIDIA_H200-cublaslt-130100": of the name letters and digits alone, and not which GPU it is.
std::string file_name(const Device& device) {
  std::string name = device.description();
  name = name.substr(0, name.find(" (GPU"));
  for (char& c : name) {
    c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  return concat(name, "-cublaslt-", cublasLtGetVersion());
}

}  // namespace

CublasLt::CublasLt(Device& device) : device_(device), choices_(device.service<MatmulChoices>()) {
  cublasLtHandle_t handle = nullptr;
  check_cublas(cublasLtCreate(&handle), "cublasLtCreate");
  handle_.reset(handle);
  if (const std::filesystem::path cache = user_cache(); choices_.lasting && !cache.empty()) {
    choices_.keep_in(cache / "products" / file_name(device));
  }
}

void CublasLt::describe(Plan& plan, const MatmulKey& key, const Matmul& p) const {
  cublasLtMatmulDesc_t description = nullptr;
  check_cublas(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F),
               "cublasLtMatmulDescCreate");
  plan.description.reset(description);
  set(description, CUBLASLT_MATMUL_DESC_TRANSA, key.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(description, CUBLASLT_MATMUL_DESC_TRANSB, key.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (key.fast_sums) {
    set(description, CUBLASLT_MATMUL_DESC_FAST_ACCUM, std::int8_t{1});
  }
  set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<cublasLtEpilogue_t>(key.epilogue));
  if (p.bias) {
    set(description, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(p.bias.dtype));
  }
  if (p.before) {
    set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, key.n);
    set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, data_type(key.output));
  }
  set_pointers(description, p);

  const auto layout = [](cudaDataType_t type, std::int64_t stored_rows,
                         std::int64_t stored_columns) {
    cublasLtMatrixLayout_t made = nullptr;
    check_cublas(
        cublasLtMatrixLayoutCreate(&made, type, static_cast<std::uint64_t>(stored_columns),
                                   static_cast<std::uint64_t>(stored_rows), stored_columns),
        "cublasLtMatrixLayoutCreate");
    return Owned<cublasLtMatrixLayout_t>(made);
  };
  const cudaDataType_t a = input_type(key, key.a_format), b = input_type(key, key.b_format);
  plan.a = key.transpose_b ? layout(b, key.n, key.k) : layout(b, key.k, key.n);
  plan.b = key.transpose_a ? layout(a, key.k, key.m) : layout(a, key.m, key.k);
  plan.d = layout(data_type(key.output), key.m, key.n);
}

// Only kernels whose sums have a fixed order: a split sum goes through the workspace.
std::vector<CublasLt::Algorithm> CublasLt::candidates(const Plan& plan, const MatmulKey& key,
                                                      int count) const {
  cublasLtMatmulPreference_t made = nullptr;
  check_cublas(cublasLtMatmulPreferenceCreate(&made), "cublasLtMatmulPreferenceCreate");
  const Owned<cublasLtMatmulPreference_t> preference(made);
  const std::uint32_t schemes =
      CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;  // partial sums are never rounded to 16 bits
  set(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceBytes);
  set(made, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes);
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set(made, attribute, static_cast<std::uint32_t>(key.alignment));
  }
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<std::size_t>(count));
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle_.get(), plan.description.get(), plan.a.get(), plan.b.get(), plan.d.get(), plan.d.get(),
      made, count, results.data(), &found);
  std::vector<Algorithm> usable;
  for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < found; ++i) {
    const auto& result = results[static_cast<std::size_t>(i)];
    if (result.state == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= kWorkspaceBytes) {
      usable.push_back({result.algo, result.workspaceSize});
    }
  }
  return usable;
}

bool CublasLt::stored(const Plan& plan, const MatmulKey& key, Algorithm& choice) {
  const std::string line = choices_.find(key);
  if (line.empty()) {
    return false;
  }
  cublasLtMatmulHeuristicResult_t result{};
  if (!parse(line, choice.algorithm) ||
      cublasLtMatmulAlgoCheck(handle_.get(), plan.description.get(), plan.a.get(), plan.b.get(),
                              plan.d.get(), plan.d.get(), &choice.algorithm,
                              &result) != CUBLAS_STATUS_SUCCESS) {
    choices_.reject(key);
    return false;
  }
  choice.workspace_bytes = result.workspaceSize;
  choices_.store(key, line);
  return true;
}

cublasStatus_t CublasLt::execute(Stream& stream, const Plan& plan, const Algorithm& choice,
                                 const Matmul& p, void* d) const {
  const Tensor workspace =
      Tensor::empty(stream, DType::uint8,
                    {static_cast<std::int64_t>(std::max<std::size_t>(choice.workspace_bytes, 1))});
  const float alpha = 1, beta = p.add ? 1 : 0;
  return cublasLtMatmul(handle_.get(), plan.description.get(), &alpha, p.b.data, plan.a.get(),
                        p.a.data, plan.b.get(), &beta, d, plan.d.get(), d, plan.d.get(),
                        &choice.algorithm, workspace.data(), choice.workspace_bytes,
                        cuda_stream(stream));
}

// Times on the real operands; into scratch where running twice would change d. In rounds, since the
// clock of a GPU falls while it works and the last candidate would look the slowest. The first
// loads the kernels, and candidates that are far behind after the second are timed no more. The
// library's first choice stays unless another is clearly faster.
CublasLt::Algorithm CublasLt::fastest(Stream& stream, const Plan& plan,
                                      const std::vector<Algorithm>& candidates,
                                      const Matmul& p) const {
  constexpr int kRounds = 4, kRuns = 2;
  constexpr double kClearly = 0.98, kFarBehind = 1.25;
  Tensor scratch;
  if (p.add) {
    scratch = Tensor::zeros(stream, p.d.dtype, p.d.shape);
  }
  void* const d = p.add ? scratch.data() : p.d.data;
  std::vector<double> least(candidates.size(), std::numeric_limits<double>::infinity());
  Event start(device_), end(device_);
  for (int round = 0; round <= kRounds; ++round) {
    const double best = *std::min_element(least.begin(), least.end());
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (round > 1 && least[i] > kFarBehind * best) {
        continue;
      }
      start.record(stream);
      bool works = true;
      for (int run = 0; run < (round == 0 ? 1 : kRuns); ++run) {
        works = works && execute(stream, plan, candidates[i], p, d) == CUBLAS_STATUS_SUCCESS;
      }
      end.record(stream);
      end.synchronize();
      if (works && round > 0) {
        least[i] = std::min(least[i], end.seconds_since(start));
      }
    }
  }
  const auto best = std::min_element(least.begin(), least.end());
  return *best < kClearly * least[0] ? candidates[static_cast<std::size_t>(best - least.begin())]
                                     : candidates[0];
}

CublasLt::Plan CublasLt::make_plan(Stream& stream, const MatmulKey& key, const Matmul& p) {
  Plan plan;
  describe(plan, key, p);
  plan.usable = stored(plan, key, plan.choice);
  if (plan.usable) {
    return plan;
  }
  const bool timed = choices_.timing && !is_capturing(stream);
  const std::vector<Algorithm> all = candidates(plan, key, timed ? kTimedCandidates : 1);
  if (all.empty()) {
    return plan;
  }
  plan.usable = true;
  plan.choice = timed && all.size() > 1 ? fastest(stream, plan, all, p) : all.front();
  if (timed) {
    choices_.store_timed(key, text(plan.choice.algorithm));
  } else {
    choices_.store(key, text(plan.choice.algorithm));
  }
  return plan;
}

bool CublasLt::multiply(Stream& stream, const Matmul& p, const MatmulSizes& sizes,
                        cublasLtEpilogue_t epilogue) {
  const MatmulKey key{.m = sizes.m,
                      .n = sizes.n,
                      .k = sizes.k,
                      .transpose_a = p.transpose_a,
                      .transpose_b = p.transpose_b,
                      .add = p.add,
                      .input = p.a.dtype,
                      .output = p.d.dtype,
                      .epilogue = epilogue,
                      .alignment = common_alignment(p),
                      .a_format = p.a_code.format,
                      .b_format = p.b_code.format,
                      .fast_sums = p.fast_sums};
  auto found = plans_.find(key);
  if (found == plans_.end()) {
    found = plans_.emplace(key, make_plan(stream, key, p)).first;
  }
  const Plan& plan = found->second;
  if (!plan.usable) {
    return false;
  }
  set_pointers(plan.description.get(), p);
  check_cublas(execute(stream, plan, plan.choice, p, p.d.data), "cublasLtMatmul");
  return true;
}

}  // namespace bloomery
