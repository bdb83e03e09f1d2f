#include "function/inspect/line_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "../tests/support/captured_log.h"
#include "base/text_output.h"
#include "function/inspect/alert_sample.h"

namespace sluice::function {
namespace {

using test::lines_of;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint64_t second = 1'000'000'000;

class LineFileTest : public testing::Test {
 protected:
  std::unique_ptr<LineFile> open(const std::string& path) {
    auto file = LineFile::open(path);
    EXPECT_TRUE(file) << file.error().message;
    return file ? std::move(*file) : nullptr;
  }
  std::string refusal(const std::string& path) {
    const auto file = LineFile::open(path);
    EXPECT_FALSE(file);
    return file ? "" : file.error().message;
  }

  test::Folder folder_;
  sluice::test::CapturedLog log_;
};

TEST_F(LineFileTest, LinesAreAppendedToWhatIsThere) {
  const std::string path = folder_ / "a";
  std::ofstream(path) << "old\n";
  auto file = open(path);
  file->append("new");
  EXPECT_THAT(lines_of(path), ElementsAre("old"));
  file->flush(1);
  EXPECT_THAT(lines_of(path), ElementsAre("old", "new"));
  file->append("last");
  file.reset();
  EXPECT_THAT(lines_of(path), ElementsAre("old", "new", "last"));
}

TEST_F(LineFileTest, WhatCannotBeWrittenIsRefusedWithWhatToDo) {
  EXPECT_THAT(refusal(folder_ / "none/a"),
              AllOf(HasSubstr(folder_ / "none/a: No such file"), HasSubstr("make its folder")));
  EXPECT_THAT(refusal(folder_ / ""), HasSubstr("name one"));
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(refusal(pipe), HasSubstr("pipe: is no regular file: name one")) << "and it has not hung";
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  EXPECT_THAT(refusal(pipe), HasSubstr("is a pipe: name a regular file"));
  close(reader);
}

TEST_F(LineFileTest, AFileIsNobodyElses) {
  open(folder_ / "a");
  EXPECT_EQ(std::filesystem::status(folder_ / "a").permissions() & std::filesystem::perms::others_all,
            std::filesystem::perms::none);
}

TEST_F(LineFileTest, AfterARenameLinesGoToTheOldFileUntilItIsOpenedAnew) {
  const std::string path = folder_ / "a", old = folder_ / "a.1";
  auto file = open(path);
  std::filesystem::rename(path, old);
  file->append("1");
  file->flush(1);
  file->append("2");
  file->reopen_soon();
  file->append("3");  // before the flush that does it
  file->flush(2);
  file->append("4");
  file->flush(3);
  EXPECT_THAT(lines_of(old), ElementsAre("1", "2", "3"));
  EXPECT_THAT(lines_of(path), ElementsAre("4"));
}

TEST_F(LineFileTest, WhereANewFileCannotBeMadeTheOldOneGoesOn) {
  std::filesystem::create_directory(folder_ / "d");
  auto file = open(folder_ / "d/a");
  std::filesystem::rename(folder_ / "d", folder_ / "e");
  file->reopen_soon();
  file->append("1");
  file->flush(second);
  EXPECT_THAT(log_.take(), HasSubstr("error " + (folder_ / "d/a: cannot be opened anew")));
  file->append("2");
  file->flush(2 * second);
  EXPECT_THAT(lines_of(folder_ / "e/a"), ElementsAre("1", "2"));
  EXPECT_THAT(log_.take(), IsEmpty()) << "once";
  EXPECT_EQ(file->counters().write_errors, 2U);
  std::filesystem::create_directory(folder_ / "d");
  file->flush(3 * second);
  EXPECT_THAT(log_.take(), HasSubstr("info " + (folder_ / "d/a: is written again")));
  file->append("3");
  file->flush(4 * second);
  EXPECT_THAT(lines_of(folder_ / "d/a"), ElementsAre("3"));
}

TEST_F(LineFileTest, AFileThatWasDeletedWithItsFolderIsMadeAgainWhenItCanBe) {
  std::filesystem::create_directory(folder_ / "d");
  const std::string path = folder_ / "d/a";
  auto file = open(path);
  file->append("gone");
  file->flush(second);
  std::filesystem::remove_all(folder_ / "d");
  file->append("kept");
  file->flush(2 * second);
  EXPECT_THAT(log_.take(), HasSubstr("error"));
  EXPECT_EQ(file->counters().write_errors, 1U);
  file->flush(2 * second + 1);
  EXPECT_EQ(file->counters().write_errors, 1U) << "not before a second is over";
  std::filesystem::create_directory(folder_ / "d");
  file->flush(3 * second);
  EXPECT_THAT(lines_of(path), ElementsAre("kept"));
  EXPECT_EQ(file->counters().lost_lines, 0U);
  std::filesystem::remove(path);
  file->append("again");
  file->flush(4 * second);
  EXPECT_THAT(lines_of(path), ElementsAre("again"));
}

TEST_F(LineFileTest, AFullDiskIsSaidOnceAndWhatItTakesNoMoreIsCounted) {
  auto file = open("/dev/full");
  const std::string line(1023, 'x');
  for (int i = 0; i < 4096; ++i) file->append(line);  // 4 MiB
  EXPECT_EQ(file->counters().lost_lines, 0U);
  EXPECT_EQ(file->counters().write_errors, 1U);
  EXPECT_THAT(log_.take(), AllOf(HasSubstr("error /dev/full: cannot be written: No space left on device"),
                                 testing::EndsWith("back\n")));
  file->append("too much");
  EXPECT_EQ(file->counters().lost_lines, 1U);
  file->flush(second);
  file->flush(2 * second);
  EXPECT_EQ(file->counters().write_errors, 3U);
  EXPECT_THAT(log_.take(), IsEmpty());
  file->finish();
  EXPECT_EQ(file->counters().lost_lines, 4097U);
  EXPECT_THAT(log_.take(), HasSubstr("its last 4096 lines are lost"));
}

// A limit of the file's size stands for the disk's: it takes part of a line.
TEST_F(LineFileTest, ALineThatAFullDiskCutGoesOnWhenThereIsSpace) {
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  auto file = open(folder_ / "a");
  file->append("first");
  file->append("second");
  const rlimit small{.rlim_cur = 9, .rlim_max = limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  file->flush(second);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, before);
  EXPECT_THAT(lines_of(folder_ / "a"), ElementsAre("first", "sec"));
  EXPECT_THAT(log_.take(), HasSubstr("cannot be written"));
  file->append("third");
  file->flush(2 * second);
  EXPECT_THAT(lines_of(folder_ / "a"), ElementsAre("first", "second", "third"));
  EXPECT_EQ(file->counters().lost_lines, 0U);
}

TEST_F(LineFileTest, TheRestOfACutLineDoesNotGoToANewFile) {
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  auto file = open(folder_ / "a");
  file->append("first");
  file->append("second");
  file->append("third");
  const rlimit small{.rlim_cur = 9, .rlim_max = limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  std::filesystem::rename(folder_ / "a", folder_ / "a.1");
  file->reopen_soon();
  file->flush(second);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, before);
  file->flush(3 * second);
  EXPECT_THAT(lines_of(folder_ / "a"), ElementsAre("third"));
  EXPECT_EQ(file->counters().lost_lines, 1U);
}

TEST_F(LineFileTest, StandardOutputByADash) {
  const std::string path = folder_ / "out";
  const int before = dup(STDOUT_FILENO);
  const int out = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  std::fflush(stdout);
  dup2(out, STDOUT_FILENO);
  {
    auto file = open("-");
    file->append("shown");
    file->reopen_soon();  // nothing to open
    file->flush(1);
    file->append("too");
    file->flush(2);
  }
  dup2(before, STDOUT_FILENO);
  close(before);
  close(out);
  EXPECT_THAT(lines_of(path), ElementsAre("shown", "too"));
  EXPECT_EQ(text_output(), stderr) << "a reader of the lines reads nothing else";
}

}  // namespace
}  // namespace sluice::function
