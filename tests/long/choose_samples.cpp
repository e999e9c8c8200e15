// The batches that a curriculum chooses, for tests/long/curricula.py: CONFIG is a JSON object with
// seed, cluster_path, metrics, num_samples, global_batch and steps. A line per step: the difficulty
// of each metric, a bar, the samples.
#include <iostream>

#include "base/file.h"
#include "config/json_fields.h"
#include "samples/curriculum/batches.h"

int main(int argc, char** argv) {
  using namespace bloomery;
  try {
    check(argc == 2, "usage: bloomery_choose_samples CONFIG");
    const JsonFields config(read_file(argv[1]), argv[1]);
    const CurriculumOptions options{.metrics = curriculum_metrics(config.json("metrics")),
                                    .seed = config.count("seed"),
                                    .cluster_path = config.get<std::string>("cluster_path")};
    CurriculumBatches batches(options, config.count("num_samples"), config.count("global_batch"));
    for (std::int64_t step = 1; step <= config.count("steps"); ++step) {
      for (const CurriculumMetric& metric : options.metrics) {
        std::cout << metric.schedule.at(step) << ' ';
      }
      std::cout << '|';
      for (const std::int64_t sample : batches.next()) {
        std::cout << ' ' << sample;
      }
      std::cout << '\n';
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
  return 0;
}
