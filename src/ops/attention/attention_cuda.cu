// Chooses between the CUDA implementations of attention, see attention_settings.h.
#include "ops/attention/attention_backends.h"
#include "ops/attention/attention_settings.h"

namespace bloomery {
namespace {

using namespace attention_cuda;

// Whether places can be read as the fast kernels do: those of keys are their indices, samples go by
// sequence, places of queries by position.
bool in_order(const AttentionProblem& problem) {
  return problem.key_places == nullptr && !problem.places.sample_per_token &&
         !problem.places.place_per_token;
}

template <class Kernel>
void run_flash(Stream& stream, const Kernel& k) {
  check(
      flash_applies(stream, k.problem),
      "attention: the flash kernels need bf16 or fp16, head_dim <= 128, a positive scale and a GPU "
      "with 160 KiB of shared memory per block; got ",
      k.problem.dtype, ", head_dim ", k.problem.head_dim, ", scale ", k.problem.scale);
  flash_run(stream, k);
}

template <class Kernel>
void run_cudnn(Stream& stream, const Kernel& k) {
  check(cudnn_run(stream, k), "attention: cuDNN is not in this build or cannot do ",
        k.problem.num_sequences, " sequences of ", k.problem.query_length, " queries and ",
        k.problem.key_length, " keys, ", k.problem.num_heads, " heads of ", k.problem.head_dim,
        " in ", k.problem.dtype, "; leave the backend to AttentionBackend::automatic");
}

template <class Kernel>
void run_chosen(Stream& stream, const Kernel& k) {
  const AttentionProblem& problem = k.problem;
  if (problem.num_sequences == 0 || problem.num_heads == 0) {
    return;
  }
  check(problem.dropout_threshold == 0 || problem.places.length == problem.query_length,
        "attention: dropout places of length ", problem.places.length, " for ",
        problem.query_length, " queries");
  const AttentionSettings& settings = stream.device().service<AttentionSettings>();
  const AttentionBackend backend = settings.backend;
  if (!in_order(problem)) {
    check(backend == AttentionBackend::automatic || backend == AttentionBackend::simple,
          "attention: only the simple kernels take places of keys, or coordinates by token");
    return simple_run(stream, k);
  }
  switch (backend) {
    case AttentionBackend::cudnn:
      return run_cudnn(stream, k);
    case AttentionBackend::flash:
      return run_flash(stream, k);
    case AttentionBackend::simple:
      return simple_run(stream, k);
    case AttentionBackend::automatic:
      break;
  }
  if (!settings.varied_lengths && cudnn_run(stream, k)) {
    return;
  }
  if (flash_applies(stream, problem)) {
    return flash_run(stream, k);
  }
  simple_run(stream, k);
}

}  // namespace

void run(OnCuda, Stream& stream, const AttentionForward& k) { run_chosen(stream, k); }
void run(OnCuda, Stream& stream, const AttentionBackward& k) { run_chosen(stream, k); }

}  // namespace bloomery
