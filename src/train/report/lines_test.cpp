#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "base/file.h"
#include "harness/shared_data.h"
#include "train/report/status_lines.h"
#include "train/report/timer_lines.h"

namespace bloomery {
namespace {

// The text between `name` and the next bar; nothing when the line has no such field.
std::optional<std::string> field(const std::string& line, const std::string& name) {
  const std::size_t at = line.find(" " + name + ": ");
  if (at == std::string::npos) return std::nullopt;
  const std::size_t begin = at + name.size() + 3;
  return line.substr(begin, line.find(" |", begin) - begin);
}

std::optional<double> number(const std::string& line, const std::string& name) {
  const auto text = field(line, name);
  return text ? std::optional<double>(std::stod(*text)) : std::nullopt;
}

IterationReport parsed(const std::string& line) {
  IterationReport r;
  const std::size_t slash = line.find('/');
  r.iteration = std::stoll(line.substr(10));
  r.train_iterations = std::stoll(line.substr(slash + 1));
  r.consumed_samples = std::stoll(*field(line, "consumed samples"));
  r.elapsed_ms = number(line, "elapsed time per iteration (ms)").value();
  r.learning_rate = number(line, "learning rate").value();
  r.global_batch = std::stoll(*field(line, "global batch size"));
  for (const char* name : {"lm loss", "lm-loss"}) {
    if (const auto loss = number(line, name)) r.losses.push_back({name, *loss});
  }
  r.loss_scale = number(line, "loss scale");
  r.grad_norm = number(line, "grad norm");
  r.num_zeros = number(line, "num zeros");
  r.skipped = std::stoll(*field(line, "number of skipped iterations"));
  r.nans = std::stoll(*field(line, "number of nan iterations"));
  return r;
}

IterationReport example() {
  IterationReport r;
  r.iteration = 100;
  r.train_iterations = 1000;
  r.consumed_samples = 25600;
  r.consumed_tokens = 26214400;
  r.elapsed_ms = 1234.56;
  r.learning_rate = 1.5e-4;
  r.global_batch = 256;
  r.losses = {{"lm loss", 3.25}, {"moe loss", 0.0}};
  r.loss_scale = 65536;
  r.grad_norm = 0.75;
  r.seq_length = 1024;
  r.samples_per_second = 207.36;
  r.tokens_per_gpu_per_second = 26542.08;
  r.tflops = 98.765;
  return r;
}

TEST(IterationLine, RealLinesOfMegatronComeBackByteForByte) {
  const auto path = shared_data("logs/bigscience-megatron-iteration-lines.txt");
  if (!path) GTEST_SKIP() << kNoSharedData;
  std::istringstream file(read_file(*path));
  int equal = 0, older = 0;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(" iteration")) continue;
    if (line.find("consumed samples") == std::string::npos) {
      ++older;  // of a release before that field
      continue;
    }
    while (line.back() == ' ') line.pop_back();
    EXPECT_EQ(iteration_line(parsed(line), LogFormat::nvidia), line);
    ++equal;
  }
  EXPECT_EQ(older, 9);
  EXPECT_EQ(equal, 185);
}

TEST(IterationLine, MegatronDeepSpeedLayout) {
  IterationReport r = example();
  EXPECT_EQ(iteration_line(r, LogFormat::megatron_deepspeed),
            " iteration      100/    1000 | consumed samples:        25600 | consumed tokens:     "
            "26214400 | elapsed time per iteration (ms): 1234.6 | learning rate: 1.500E-04 | "
            "global batch size:   256 | lm loss: 3.250000E+00 | loss scale: 65536.0 | grad norm: "
            "0.750 | actual seqlen:  1024 | number of skipped iterations:   0 | number of nan "
            "iterations:   0 | samples per second: 207.360 | tokens per gpu per second (tgs): "
            "26542.080 | TFLOPs: 98.77 |");
  r.num_zeros = 12;
  r.params_norm = 1.5;
  r.curriculum_seqlen = 64;
  r.random_ltd_length = 128;
  EXPECT_NE(iteration_line(r, LogFormat::megatron_deepspeed)
                .find(" | num zeros: 12.0 | params norm: 1.500 | curriculum seqlen:    64 | random "
                      "ltd reserved length:   128 | actual seqlen:"),
            std::string::npos);
}

TEST(IterationLine, MegatronLmLayoutWithThroughput) {
  IterationReport r = example();
  r.model_tflops = 81.26;
  EXPECT_EQ(iteration_line(r, LogFormat::nvidia),
            " iteration      100/    1000 | consumed samples:        25600 | elapsed time per "
            "iteration (ms): 1234.6 | throughput per GPU (TFLOP/s/GPU): 81.3 | learning rate: "
            "1.500E-04 | global batch size:   256 | lm loss: 3.250000E+00 | loss scale: 65536.0 | "
            "grad norm: 0.750 | number of skipped iterations:   0 | number of nan iterations:   0 "
            "|");
}

TEST(IterationLine, BothLayoutsHaveTheThroughputThatIsAskedFor) {
  IterationReport r = example();
  r.model_tflops = 81.26;
  EXPECT_NE(
      iteration_line(r, LogFormat::megatron_deepspeed)
          .find(" iteration (ms): 1234.6 | throughput per GPU (TFLOP/s/GPU): 81.3 | learning"),
      std::string::npos);
}

TEST(IterationLine, LossThatIsNotANumberIsLeftOut) {
  IterationReport r = example();
  r.losses = {{"lm loss", std::numeric_limits<double>::quiet_NaN()}};
  EXPECT_EQ(iteration_line(r, LogFormat::nvidia).find("lm loss"), std::string::npos);
}

TEST(StatusLines, ArgumentsTable) {
  EXPECT_EQ(arguments_table({{"num_layers", "24"}, {"DDP_impl", "local"}, {"bf16", "False"}}),
            "------------------------ arguments ------------------------\n"
            "  bf16 ............................................ False\n"
            "  DDP_impl ........................................ local\n"
            "  num_layers ...................................... 24\n"
            "-------------------- end of arguments ---------------------");
}

TEST(StatusLines, Evaluation) {
  EvaluationReport report{.iteration = 1000, .losses = {{"lm loss", 2.0}}};
  const std::string line =
      " validation loss at iteration 1000 | lm loss value: 2.000000E+00 | lm loss PPL: "
      "7.389056E+00 | ";
  const std::string rule(line.size() + 1, '-');
  EXPECT_EQ(evaluation_lines(report), rule + "\n" + line + "\n" + rule);
  report.final_samples = 2560;
  report.test = true;
  EXPECT_NE(evaluation_lines(report).find(
                " validation loss at iteration 1000 on 2560-sample draw from test set | lm loss"),
            std::string::npos);
  EXPECT_DOUBLE_EQ(perplexity(100), std::exp(20.0));
}

TEST(StatusLines, MemoryAsPythonPrintsIt) {
  EXPECT_EQ(memory_line(0, 100, {1048576, 1572864, 1049600, 3145728000}),
            "[Rank 0] (after 100 iterations) memory (MB) | allocated: 1.0 | max allocated: 1.5 | "
            "reserved: 1.0009765625 | max reserved: 3000.0");
  EXPECT_EQ(python_float(0.1), "0.1");
  EXPECT_EQ(python_float(-3), "-3.0");
  EXPECT_EQ(python_float(1e-5), "1e-05");
  EXPECT_EQ(python_float(1e16), "1e+16");
}

TEST(StatusLines, Checkpoints) {
  EXPECT_EQ(saving_line(20, "run"), "saving checkpoint at iteration      20 to run");
  EXPECT_EQ(saved_line(20, "run"), "  successfully saved checkpoint at iteration      20 to run");
  EXPECT_EQ(save_throughput_line(124000000, 2),
            "Checkpoint Save GB: 1.736, GB/Sec: 0.87, Latency(second): 2.0");
  EXPECT_EQ(loading_line("run", 20), " loading checkpoint from run at iteration 20");
  EXPECT_EQ(checkpoint_version_line(), " checkpoint version 3.0");
  EXPECT_EQ(loaded_line("run", 20), "  successfully loaded checkpoint from run at iteration 20");
  EXPECT_EQ(no_checkpoint_lines("run/latest"),
            "WARNING: could not find the metadata file run/latest \n"
            "    will not load any checkpoints and will start from random");
}

TEST(StatusLines, StartUp) {
  EXPECT_EQ(world_size_line({8, 2, 1, 2, 2}),
            "using world size: 8, data-parallel-size: 2, sequence-parallel size: 1, "
            "tensor-model-parallel size: 2, pipeline-model-parallel size: 2 ");
  EXPECT_EQ(parameter_type_line("torch.float16"), "using torch.float16 for parameters ...");
  EXPECT_EQ(building_tokenizer_line("GPT2BPETokenizer"),
            "> building GPT2BPETokenizer tokenizer ...");
  EXPECT_EQ(padded_vocabulary_line(50257, 50304),
            " > padded vocab (size: 50257) with 47 dummy tokens (new size: 50304)");
  EXPECT_EQ(micro_batches_line(4), "setting number of micro-batches to constant 4");
  EXPECT_EQ(rampup_line(16, 64, 16, 1000),
            "will use batch size rampup starting from global batch size 16 to global batch size "
            "64 with batch size increments 16 over 1000 samples.");
  EXPECT_EQ(model_parallel_lines(2, 1),
            "> initialized tensor model parallel with size 2\n"
            "> initialized pipeline model parallel with size 1");
  EXPECT_EQ(random_seed_line(1234), "> setting random seeds to 1234 ...");
  EXPECT_EQ(initialize_time_line(1.23456), "time to initialize megatron (seconds): 1.235");
  EXPECT_EQ(parameter_count_line(0, 1, 354871296),
            " > number of parameters on (tensor, pipeline) model parallel rank (0, 1): 354871296");
  StateReport state{.pipeline_rank = 1, .holders = 1};
  state.parameters = {.expected = 1048576, .allocated = 1153434};
  EXPECT_EQ(state_line(state),
            " > training state in MB on (tensor, pipeline) model parallel rank (0, 1), ZeRO 0 over "
            "1 rank: parameters 1.1 (arithmetic 1.0) | gradients 0.0 (arithmetic 0.0) | optimizer "
            "0.0 (arithmetic 0.0)");
  state.zero_stage = 3;
  state.holders = 4;
  state.blocks = 5 << 19;
  EXPECT_TRUE(state_line(state).ends_with(" | two whole blocks 2.5"));
  EXPECT_NE(state_line(state).find("ZeRO 3 over 4 ranks: "), std::string::npos);
  EXPECT_EQ(decay_style_line("cosine"), "> learning rate decay style: cosine");
  EXPECT_EQ(dataset_sizes_lines(8000, 880, 80),
            " > datasets target sizes (minimum size):\n    train:      8000\n"
            "    validation: 880\n    test:       80");
  EXPECT_EQ(datetime_line("x", 0).size(), std::string("[x] datetime: 1970-01-01 00:00:00 ").size());
  EXPECT_TRUE(exit_line(7, 0).starts_with("[exiting program at iteration 7] datetime: 19"));
}

TEST(TimerLines, ThreeLayouts) {
  const std::vector<TimerReport> timers = {{"forward-backward", {12.345, 10}},
                                           {"optimizer", {0, 0}}};
  EXPECT_EQ(timer_lines(timers, TimingOption::minmax),
            "(min, max) time across ranks (ms):\n"
            "    forward-backward ...............................: (10.00, 12.35)");
  EXPECT_EQ(timer_lines(timers, TimingOption::max),
            "(min, max) time across ranks (ms):\n"
            "    forward-backward ...............................: 12.35");
  EXPECT_EQ(timer_lines(timers, TimingOption::all),
            "times across ranks (ms):\n  forward-backward:\n     rank  0: 12.35\n"
            "     rank  1: 10.00");
  EXPECT_EQ(timer_lines({{"optimizer", {0}}}, TimingOption::minmax), "");
}

}  // namespace
}  // namespace bloomery
