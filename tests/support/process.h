// Runs another program of the build and returns what it printed.
#pragma once
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

namespace kiln::test {

struct ProcessResult {
  int status = -1;     ///< exit status; 128 + signal when it was killed
  std::string output;  ///< stdout, with stderr where the command says so
};

inline std::string shell_quote(const std::string& word) {
  std::string out = "'";
  for (char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// Runs a shell command line and waits for its end.
inline ProcessResult run_shell(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) throw std::runtime_error("cannot start: " + command);
  ProcessResult result;
  std::array<char, 4096> chunk;
  while (std::size_t n = fread(chunk.data(), 1, chunk.size(), pipe)) result.output.append(chunk.data(), n);
  const int raw = pclose(pipe);
  result.status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
  return result;
}

/// Runs `argv` with the variables of `environment` ("NAME=value") added; stderr is part of the output.
inline ProcessResult run_program(const std::vector<std::string>& argv,
                                 const std::vector<std::string>& environment = {}) {
  std::string command = "env";
  for (const std::string& e : environment) command += " " + shell_quote(e);
  for (const std::string& a : argv) command += " " + shell_quote(a);
  return run_shell(command + " 2>&1");
}

}  // namespace kiln::test
