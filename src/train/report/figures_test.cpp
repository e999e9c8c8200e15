#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/file.h"
#include "harness/shared_data.h"
#include "train/report/live_line.h"
#include "train/report/plot.h"
#include "train/report/report_html.h"
#include "train/report/throughput.h"

namespace bloomery {
namespace {

const ModelShape k345M{24, 1024, 16, 16, 4096, 50304};
const ModelShape kGrouped{32, 4096, 32, 8, 11008, 32000, true};

// Expected values: the formulas of both programs evaluated with Python's integers.
TEST(Throughput, OperationsOfBothPrograms) {
  EXPECT_DOUBLE_EQ(deepspeed_flops(k345M, 8, 1024, Recomputation::none), 19849191358464.0);
  EXPECT_DOUBLE_EQ(deepspeed_flops(k345M, 8, 1024, Recomputation::selective), 20673825079296.0);
  EXPECT_DOUBLE_EQ(deepspeed_flops(k345M, 8, 1024, Recomputation::full), 26465588477952.0);
  EXPECT_DOUBLE_EQ(deepspeed_flops(kGrouped, 4, 4096, Recomputation::none), 649502134370304.0);
  EXPECT_DOUBLE_EQ(model_flops(k345M, 8, 1024), 18612240777216.0);
  EXPECT_DOUBLE_EQ(model_flops(kGrouped, 4, 4096), 623113855303680.0);
}

TEST(Throughput, ADecoderBehindAnEncoderCountsOnItsOwnTokens) {
  ModelShape shape{.layers = 12,
                   .width = 768,
                   .heads = 12,
                   .kv_heads = 12,
                   .ffn_width = 3072,
                   .padded_vocabulary = 30592,
                   .causal = false};
  const double encoder = model_flops(shape, 4, 512), theirs = deepspeed_flops(shape, 4, 512, {});
  shape.decoder_layers = 6;
  shape.decoder_length = 128;
  const double w = 768, e = 4 * 512, d = 4 * 128;
  // Of one decoder layer, forward: four projections and the MLP, attention to itself (half) and to
  // the encoder, whose keys and values are projected once.
  const double own = 2 * d * (4 * w * w + 2 * w * 3072) + 2 * d * 128 * w + 4 * d * 512 * w +
                     2 * 2 * w * w * (d + e);
  const double logits = 2 * w * 30592 * (d - e);
  EXPECT_NEAR(model_flops(shape, 4, 512), encoder + 3 * (6 * own + logits), 1e-9 * encoder);
  EXPECT_NEAR(deepspeed_flops(shape, 4, 512, {}),
              theirs + 3 * (6 * (own + 2 * d * 128 * w) + logits), 1e-9 * theirs);
}

// What a token passes counts, not what the model has: heads of their own width, layers without
// experts, the MLP beside experts.
TEST(Throughput, ModelsCountWhatTokensPass) {
  ModelOptions m;
  m.num_layers = 4;
  m.hidden_size = 64;
  m.attention.num_heads = m.attention.num_groups = 4;
  m.attention.head_dim = 32;
  m.mlp.ffn = 256;
  EXPECT_EQ(model_flops(model_shape(m, 1), 1, 1) - model_flops({4, 64, 4, 4, 256, 1}, 1, 1),
            3 * 4 * (8 * 64 * 64 + 2 * 64));
  const double dense = model_flops(model_shape(m, 1), 1, 1);
  m.moe = {.num_experts = {8}, .kind = MoeKind::residual, .topk = 2};
  EXPECT_EQ(model_flops(model_shape(m, 1), 1, 1) - dense, 3 * 2 * 4 * 64 * 2 * 256);
}

TEST(Throughput, Rates) {
  const Throughput t = throughput(k345M, 8, 1024, Recomputation::none, 0.5, 2);
  EXPECT_DOUBLE_EQ(t.samples_per_second, 16);
  EXPECT_DOUBLE_EQ(t.tokens_per_second, 16384);
  EXPECT_DOUBLE_EQ(t.tokens_per_gpu_per_second, 8192);
  EXPECT_DOUBLE_EQ(t.tflops, 19.849191358464);
  EXPECT_THROW(throughput(k345M, 8, 1024, Recomputation::none, 0, 1), Error);
  EXPECT_THROW(model_flops({}, 1, 1), Error);
}

LiveState live_state() {
  return {.iteration = 250,
          .train_iterations = 1000,
          .loss = 3.21456,
          .tokens_per_second = 48210,
          .utilisation = 0.412,
          .memory_bytes = 3ll << 30,
          .seconds_left = 192};
}

TEST(LiveLine, ShowsEverythingWhereThereIsRoom) {
  EXPECT_EQ(live_line(live_state(), {.columns = 100, .unicode = false}),
            "250/1000  25% [####.............] | loss 3.2146 | 3m 12s left | 48.2k tokens/s | MFU "
            "41.2% | 3.0 GiB");
  EXPECT_NE(live_line(live_state(), {.columns = 200}).find("█"), std::string::npos);
}

TEST(LiveLine, NeverWiderThanTheTerminal) {
  for (const bool unicode : {false, true}) {
    std::size_t fewest = 1000;
    for (int columns = 150; columns >= 0; --columns) {
      const std::string line = live_line(live_state(), {.columns = columns, .unicode = unicode});
      const auto width =
          std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; });
      EXPECT_LE(width, columns);
      fewest = std::min(fewest, line.size());
    }
    EXPECT_EQ(fewest, 0u);
  }
  EXPECT_EQ(live_line(live_state(), {.columns = 44, .unicode = false}),
            "250/1000  25% | loss 3.2146 | 3m 12s left");
}

TEST(LiveLine, ShortNumbers) {
  EXPECT_EQ(short_duration(48.2), "48s");
  EXPECT_EQ(short_duration(7500), "2h 05m");
  EXPECT_EQ(short_duration(4 * 86400 + 3 * 3600), "4d 03h");
  EXPECT_EQ(short_duration(std::nan("")), "?");
  EXPECT_EQ(short_count(912), "912");
  EXPECT_EQ(short_count(999.7), "1.00k");
  EXPECT_EQ(short_count(1312345), "1.31M");
  EXPECT_EQ(short_count(0), "0");
}

TEST(LiveLine, WritesOnlyToATerminal) {
  const TemporaryFolder folder;
  const auto path = folder.file("out", "");
  std::FILE* file = std::fopen(path.c_str(), "w");
  {
    LiveWriter writer(fileno(file));
    EXPECT_FALSE(writer.active());
    writer.update(live_state());
  }
  std::fclose(file);
  EXPECT_EQ(read_file(path), "");
}

TEST(Plot, RoundTicks) {
  EXPECT_EQ(round_ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  const auto ticks = round_ticks(-0.31, 0.29, 6);
  EXPECT_EQ(ticks.size(), 6u);
  EXPECT_EQ(std::count(ticks.begin(), ticks.end(), 0.0), 1);
  EXPECT_TRUE(round_ticks(1, 1, 5).empty());
}

TEST(Plot, ThinningKeepsExtremesAndEnds) {
  std::vector<PlotPoint> points;
  for (int i = 0; i < 100000; ++i) points.push_back({double(i), std::sin(i * 0.01)});
  points[33333].y = 50;
  points[66666].y = -50;
  points[40000].y = std::numeric_limits<double>::quiet_NaN();
  const auto kept = thinned(points, 500);
  EXPECT_LE(kept.size(), 1002u);
  const auto has = [&kept](double y) {
    return std::any_of(kept.begin(), kept.end(), [y](const PlotPoint& p) { return p.y == y; });
  };
  EXPECT_TRUE(has(50) && has(-50));
  EXPECT_EQ(kept.front().x, 0);
  EXPECT_EQ(kept.back().x, 99999);
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end(),
                             [](const PlotPoint& a, const PlotPoint& b) { return a.x < b.x; }));
  EXPECT_EQ(thinned(points, 0).size(), points.size());
}

MetricsRow event(MetricsKind kind, std::int64_t iteration, double time) {
  return {kind, iteration, 8 * iteration, 64 * iteration, time, {}};
}

// A run of 100 iterations from a loss of 9 to one near 2, resumed at 40.
std::vector<MetricsRow> example_run() {
  MetricsRow start = event(MetricsKind::start, 0, 1000);
  start.values = {{"train_iterations", 200}, {"loss_floor", 0.08}};
  start.texts = {{"title", "a <b> & c"}, {"device", "H200"}};
  start.options = {{"lr", "1e-3"}};
  std::vector<MetricsRow> rows = {start};
  for (int i = 1; i <= 100; ++i) {
    IterationReport r;
    r.iteration = i;
    r.consumed_tokens = 64 * i;
    r.losses = {{"lm loss", 2 + 7.0 / i}};
    r.grad_norm = i == 20 ? 900 : 1;
    r.seq_length = 8;
    r.samples_per_second = 10;
    rows.push_back(metrics_row(r, 1000 + i + (i > 40 ? 3600 : 0)));
    if (i == 40) {
      rows.push_back(event(MetricsKind::checkpoint, 40, 1040.5));
      start.iteration = 40;
      start.time = 4640;
      rows.push_back(start);
    }
    if (i % 50 == 0) {
      rows.push_back(
          metrics_row(EvaluationReport{.iteration = i, .losses = {{"lm loss", 3.0 - i / 100.0}}},
                      8 * i, 64 * i, 4600.5 + i));
    }
  }
  return rows;
}

TEST(Report, HasCurvesFloorAndEscapedTextAndNoScript) {
  const std::vector<MetricsRow> rows = example_run();
  const std::string page = report_html(rows, run_summary(rows));
  for (const char* part : {"a &lt;b&gt; &amp; c", "entropy floor 0.0800", ">training<",
                           ">validation<", "Learning rate", "Gradient norm", "Throughput",
                           "<td>lr</td>", "iteration 50: validation 2.5", ">resumed<",
                           ">checkpoint<", "iteration 40: resumed on H200", "from a loss of 9,"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  for (const char* part : {"<script", "http", "nan", "inf\"", "<b>", "Memory"}) {
    EXPECT_EQ(page.find(part), std::string::npos) << part;
  }
}

TEST(Report, SumsUpWhatTheRowsSay) {
  std::vector<MetricsRow> rows = example_run();
  MetricsRow sample = event(MetricsKind::sample, 90, 9000);
  sample.texts = {{"prompt", "Once"}, {"text", " old"}};
  rows.push_back(sample);
  sample.iteration = 100;
  sample.tokens = 0;
  sample.texts[1].second = " upon a time";
  rows.push_back(sample);
  const RunSummary summary = run_summary(rows);
  const auto figure = [&summary](const std::string& name) {
    for (const auto& [own, value] : summary.figures) {
      if (own == name) return value;
    }
    return std::string();
  };
  EXPECT_EQ(figure("iterations"), "100 of 200");
  EXPECT_EQ(figure("tokens"), "6.40k");
  EXPECT_EQ(figure("best validation loss"), "2");
  EXPECT_EQ(figure("time at work"), "1m 41s") << "without the hour in which nothing ran";
  EXPECT_EQ(figure("device"), "H200");
  EXPECT_EQ(summary.events.size(), 3u);
  EXPECT_EQ(summary.samples, (ArgumentList{{"Once", " upon a time"}}));
}

TEST(Report, IsDrawnFromTheFileAlone) {
  const TemporaryFolder folder;
  EXPECT_THROW(write_report(folder.path()), Error);
  MetricsFile file(folder.path() / "metrics.jsonl", 0);
  for (const MetricsRow& row : example_run()) file.add(row);
  EXPECT_EQ(read_file(write_report(folder.path())),
            report_html(example_run(), run_summary(example_run())));
}

TEST(Report, EmptyRunHasAPage) {
  EXPECT_NE(report_html({}, run_summary({})).find("nothing was measured"), std::string::npos);
}

TEST(Plot, LogarithmicAxisWithinADecadeHasEvenTicks) {
  Plot plot{.title = "t", .x_title = "x"};
  plot.logarithmic = true;
  plot.series = {{"a", {{0, 2.2}, {1, 3.9}}}};
  const std::string svg = plot_svg(plot, {500, 300});
  for (const char* tick : {">2.5<", ">3<", ">3.5<"}) {
    EXPECT_NE(svg.find(tick), std::string::npos) << tick;
  }
}

TEST(Plot, LogarithmicAxisHasTicksOverAllOfACurve) {
  Plot plot{.title = "t", .x_title = "x"};
  plot.logarithmic = true;
  plot.series = {{"a", {{0, 6.2}, {1, 0.6}}}};
  const std::string svg = plot_svg(plot, {500, 300});
  for (const char* tick : {">0.7<", ">1<", ">2<", ">5<"}) {
    EXPECT_NE(svg.find(tick), std::string::npos) << tick;
  }
}

TEST(Plot, LegendShowsWhatIsDrawn) {
  Plot plot{.title = "t", .x_title = "x"};
  plot.series = {{"training", {{0, 2}, {1, 1}}},
                 {"validation", {{1, 1.5}}, true},
                 {"test", {{0, 2}, {1, 1.5}}, true}};
  plot.marks = {{1, PlotMark::Kind::tick, "checkpoint"}};
  const std::string html = plot_html(plot, {500, 300});
  const std::string legend = html.substr(0, html.find("</ul>"));
  const auto drawn = [&](const std::string& name) {
    const std::size_t end = legend.find("<span>" + name), begin = legend.rfind("<li>", end);
    return end == legend.npos ? "" : legend.substr(begin, end - begin);
  };
  EXPECT_EQ(drawn("training").find("circle"), std::string::npos);
  EXPECT_NE(drawn("training").find("class=\"c0\""), std::string::npos);
  EXPECT_NE(drawn("validation").find("class=\"d1\""), std::string::npos);
  EXPECT_EQ(drawn("validation").find("path"), std::string::npos);  // a point is no line
  EXPECT_NE(drawn("test").find("class=\"c2\""), std::string::npos);
  EXPECT_NE(drawn("test").find("class=\"d2\""), std::string::npos);
  EXPECT_NE(drawn("checkpoint").find("M9 "), std::string::npos);  // upright, as at the axis
}

}  // namespace
}  // namespace bloomery
