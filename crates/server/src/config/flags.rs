//! The settings as flags, made from the table of settings.

use std::collections::HashMap;
use std::path::PathBuf;

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Command, Error};

use super::settings::{Preset, SETTINGS, Setting};

const FILE_FLAG: &str = "config";

/// What was set by flags.
#[derive(Clone, Debug, Default)]
pub struct SettingFlags {
    pub(super) file: Option<PathBuf>,
    pub(super) values: HashMap<&'static str, String>,
}

impl clap::Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        let file = Arg::new(FILE_FLAG)
            .long(FILE_FLAG)
            .value_name("FILE")
            .value_parser(ValueParser::path_buf())
            .help("the configuration file [default: anabranch.toml, if it is there]")
            .help_heading("Settings");
        SETTINGS
            .iter()
            .map(flag)
            .fold(command.arg(file), Command::arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        SettingFlags::augment_args(command)
    }
}

fn flag(setting: &'static Setting) -> Arg {
    let default = match setting.preset {
        Preset::Value(text) if !setting.is_switch() => format!(" [default: {text}]"),
        Preset::InDataDir(before, behind) => format!(" [default: {before}DATA-DIR{behind}]"),
        Preset::Value(_) | Preset::Unset => String::new(),
    };
    let arg = Arg::new(setting.name)
        .long(setting.name)
        .help(format!("{}{default}", setting.help))
        .help_heading("Settings")
        .overrides_with(setting.name);
    if setting.is_switch() {
        arg.action(ArgAction::SetTrue)
    } else {
        arg.value_name(setting.value_name)
    }
}

impl clap::FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<SettingFlags, Error> {
        let value = |setting: &'static Setting| {
            let value = if setting.is_switch() {
                matches.get_flag(setting.name).then(|| "true".to_owned())
            } else {
                matches.get_one::<String>(setting.name).cloned()
            };
            value.map(|value| (setting.name, value))
        };
        Ok(SettingFlags {
            file: matches.get_one::<PathBuf>(FILE_FLAG).cloned(),
            values: SETTINGS.iter().filter_map(value).collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = SettingFlags::from_arg_matches(matches)?;
        Ok(())
    }
}
