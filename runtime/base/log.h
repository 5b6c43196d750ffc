// Messages to the user on stderr, filtered by KILN_LOG. One message is one write, so lines of threads do not mix.
#pragma once
#include <string>

namespace kiln::rt {

/// The KILN_LOG value from which a message is shown.
enum class LogLevel { Error = 0, Info = 1, Debug = 2 };

/// True if say(level, …) writes; ask before building a costly message.
bool log_enabled(LogLevel level);
/// Writes "kiln: <message>" and a line end.
void say(LogLevel level, const std::string& message);
/// As say(), but only for the first message of `topic` in this process.
void say_once(LogLevel level, const std::string& topic, const std::string& message);

}  // namespace kiln::rt
