#include "comm/start/start.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "comm/start/node_list.h"

namespace bloomery {
namespace {

std::string error_of(const Variables& variables) {
  try {
    start_facts(variables);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

void expect_place(const StartFacts& f, int rank, int size, int local_rank, int local_size) {
  EXPECT_EQ(f.rank, rank);
  EXPECT_EQ(f.size, size);
  EXPECT_EQ(f.local_rank, local_rank);
  EXPECT_EQ(f.local_size, local_size);
}

const Variables kTorchrun = {{"RANK", "5"},           {"WORLD_SIZE", "8"},
                             {"LOCAL_RANK", "1"},     {"LOCAL_WORLD_SIZE", "4"},
                             {"GROUP_RANK", "1"},     {"MASTER_ADDR", "node7"},
                             {"MASTER_PORT", "29500"}};
const Variables kOpenMpi = {
    {"OMPI_COMM_WORLD_RANK", "3"},       {"OMPI_COMM_WORLD_SIZE", "4"},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "3"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
    {"OMPI_COMM_WORLD_NODE_RANK", "3"},  {"PMIX_RANK", "3"},
    {"PMIX_NAMESPACE", "2311847937"}};
const Variables kMpich = {{"PMI_RANK", "2"},
                          {"PMI_SIZE", "4"},
                          {"PMI_FD", "9"},
                          {"MPI_LOCALRANKID", "0"},
                          {"MPI_LOCALNRANKS", "2"}};
const Variables kSlurm = {{"SLURM_PROCID", "5"},
                          {"SLURM_NTASKS", "7"},
                          {"SLURM_STEP_NUM_TASKS", "7"},
                          {"SLURM_LOCALID", "1"},
                          {"SLURM_NODEID", "1"},
                          {"SLURM_STEP_TASKS_PER_NODE", "4,3"},
                          {"SLURM_STEP_NODELIST", "gpu[007-008]"},
                          {"SLURM_JOB_ID", "4711"},
                          {"SLURM_STEP_ID", "2"}};

Variables both(Variables a, const Variables& b) {
  a.insert(b.begin(), b.end());
  return a;
}

TEST(Start, OneProcessByItself) {
  const StartFacts alone = start_facts({{"HOME", "/root"}, {"WORLD_SIZE", "1"}});
  expect_place(alone, 0, 1, 0, 1);
  EXPECT_EQ(alone.source, "");
}

TEST(Start, Torchrun) {
  const StartFacts f = start_facts(kTorchrun);
  expect_place(f, 5, 8, 1, 4);
  EXPECT_EQ(f.host, "node7");
  EXPECT_EQ(f.port, 29500);
  EXPECT_EQ(f.line(), "rank 5 of 8, as torchrun's RANK says");
}

TEST(Start, Kubernetes) {
  const Variables address = {{"MASTER_ADDR", "job-master-0"}, {"MASTER_PORT", "23456"}};
  expect_place(start_facts(both({{"RANK", "2"}, {"WORLD_SIZE", "3"}}, address)), 2, 3, 0, 1);
  const StartFacts indexed =
      start_facts(both({{"JOB_COMPLETION_INDEX", "1"}, {"WORLD_SIZE", "2"}}, address));
  expect_place(indexed, 1, 2, 0, 1);
  EXPECT_EQ(indexed.host, "job-master-0");
  EXPECT_TRUE(indexed.pod);
  EXPECT_FALSE(start_facts(kTorchrun).pod);
  expect_place(start_facts({{"JOB_COMPLETION_INDEX", "4"}}), 0, 1, 0, 1);
}

TEST(Start, OpenMpiOnOneMachineAndOnSeveral) {
  const StartFacts f = start_facts(kOpenMpi);
  expect_place(f, 3, 4, 3, 4);
  EXPECT_EQ(f.host, "127.0.0.1");
  EXPECT_EQ(f.port, 0);
  EXPECT_EQ(f.job, "2311847937");
  EXPECT_TRUE(f.by_mpi);
  Variables two = kOpenMpi;
  two["OMPI_COMM_WORLD_LOCAL_SIZE"] = "2";
  EXPECT_EQ(start_facts(two).host, "");
  two["MASTER_ADDR"] = "node1";
  EXPECT_EQ(start_facts(two).host, "node1");
}

TEST(Start, Mpich) {
  const StartFacts f = start_facts(kMpich);
  expect_place(f, 2, 4, 0, 2);
  EXPECT_EQ(f.host, "");
  EXPECT_EQ(f.line(), "rank 2 of 4, as MPICH's mpiexec says");
}

TEST(Start, Pals) {
  const StartFacts f = start_facts({{"PALS_RANKID", "9"},
                                    {"PMI_RANK", "9"},
                                    {"PMI_SIZE", "12"},
                                    {"PALS_LOCAL_RANKID", "3"},
                                    {"PALS_LOCAL_SIZE", "6"},
                                    {"PBS_NODEFILE", "/var/spool/pbs/aux/1"},
                                    {"PBS_JOBID", "123.polaris"}});
  expect_place(f, 9, 12, 3, 6);
  EXPECT_EQ(f.source, "PALS' mpiexec");
  EXPECT_EQ(f.node_file, "/var/spool/pbs/aux/1");
  EXPECT_EQ(f.job, "123.polaris");
}

TEST(Start, SlurmStepsButNotBatchScripts) {
  const StartFacts f = start_facts(kSlurm);
  expect_place(f, 5, 7, 1, 3);
  EXPECT_EQ(f.host, "gpu007");
  EXPECT_EQ(f.job, "4711.2");
  Variables script = kSlurm;
  for (const char* name : {"SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST", "SLURM_STEP_ID"}) {
    script.erase(name);
  }
  expect_place(start_facts(script), 0, 1, 0, 1);
}

TEST(Start, OurOwnLauncherWins) {
  const StartFacts f = start_facts(both(kOpenMpi, {{"BLOOMERY_RANK", "1"},
                                                   {"BLOOMERY_WORLD_SIZE", "2"},
                                                   {"BLOOMERY_LOCAL_RANK", "1"},
                                                   {"BLOOMERY_LOCAL_SIZE", "2"},
                                                   {"BLOOMERY_HOST", "10.0.0.1"},
                                                   {"BLOOMERY_PORT", "4000"}}));
  expect_place(f, 1, 2, 1, 2);
  EXPECT_EQ(f.host, "10.0.0.1");
  EXPECT_EQ(f.port, 4000);
  EXPECT_EQ(f.line(), "rank 1 of 2, as bloomery launch says");
}

TEST(Start, OneLauncherInsideAnotherIsNoContradiction) {
  // srun or mpirun starts one torchrun per machine.
  EXPECT_EQ(start_facts(both(kTorchrun, {{"SLURM_PROCID", "1"},
                                         {"SLURM_STEP_NUM_TASKS", "2"},
                                         {"SLURM_STEP_NODELIST", "gpu[1-2]"}}))
                .rank,
            5);
  // mpirun starts its helpers with srun.
  EXPECT_EQ(start_facts(both(kOpenMpi, kSlurm)).rank, 3);
  // A shell within a job, and the same said twice.
  EXPECT_EQ(start_facts(both(kTorchrun, {{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}})).rank, 5);
  EXPECT_EQ(start_facts(both(kTorchrun, {{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}})).rank, 5);
}

TEST(Start, ContradictionsAreRefusedWithBothValues) {
  EXPECT_EQ(error_of(both(kTorchrun, kOpenMpi)),
            "torchrun's RANK says rank 5 of 8, but Open MPI's mpirun says rank 3 of 4: "
            "unset the variables of the one that did not start this process");
  EXPECT_NE(error_of(both(kOpenMpi, kMpich)), "");
}

TEST(Start, IncompleteOrSenselessSetsAreRefused) {
  EXPECT_NE(error_of({{"WORLD_SIZE", "8"}}).find("no variable gives the rank"), std::string::npos);
  EXPECT_NE(error_of({{"RANK", "1"}, {"WORLD_SIZE", "2"}}).find("MASTER_ADDR and MASTER_PORT"),
            std::string::npos);
  EXPECT_NE(error_of({{"RANK", "two"}, {"WORLD_SIZE", "3"}}).find("RANK is 'two'"),
            std::string::npos);
  EXPECT_NE(error_of({{"PMI_RANK", "4"}, {"PMI_SIZE", "4"}}).find("rank 4 (PMI_RANK) of 4"),
            std::string::npos);
  EXPECT_NE(error_of({{"BLOOMERY_RANK", "0"}, {"BLOOMERY_WORLD_SIZE", "2"}}).find("BLOOMERY_PORT"),
            std::string::npos);
}

TEST(Start, NodeLists) {
  EXPECT_EQ(first_node("alpha"), "alpha");
  EXPECT_EQ(first_node("alpha,beta"), "alpha");
  EXPECT_EQ(first_node("node[01-04,7],z"), "node01");
  EXPECT_EQ(first_node("node[7,9]"), "node7");
  EXPECT_EQ(first_node("rack[2-3]-node[5-6]"), "rack2-node5");
  EXPECT_EQ(first_node("rack[2-3]-ib,other"), "rack2-ib");
  EXPECT_EQ(first_node("node["), "");
  EXPECT_EQ(entry_of_counts("4(x2),3", 0), 4);
  EXPECT_EQ(entry_of_counts("4(x2),3", 1), 4);
  EXPECT_EQ(entry_of_counts("4(x2),3", 2), 3);
  EXPECT_EQ(entry_of_counts("4(x2),3", 3), 0);
}

}  // namespace
}  // namespace bloomery
