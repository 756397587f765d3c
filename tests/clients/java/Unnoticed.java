// CometD's own Java client while servers follow one another; js/unnoticed.js has others.
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.cometd.bayeux.Channel;
import org.cometd.bayeux.Message;
import org.cometd.bayeux.client.ClientSessionChannel.MessageListener;
import org.cometd.client.BayeuxClient;
import org.cometd.client.ext.AckExtension;
import org.eclipse.jetty.util.ajax.JSON;

public class Unnoticed {
    public static void main(String[] args) throws Exception {
        Told.play("hearsAll", Unnoticed::hearsAll);
    }

    private static void hearsAll(Map<?, ?> context) throws Exception {
        List<Witness> witnesses = new ArrayList<>();
        for (Object each : (Object[])context.get("witnesses")) {
            witnesses.add(new Witness(context, (Map<?, ?>)each));
        }
        for (Witness each : witnesses) {
            Told.take(each.subscribed, "a subscription of " + each.name);
        }
        Told.ask("everybody is there");
        long end = System.currentTimeMillis() + ((Number)context.get("patience")).longValue();
        for (Witness each : witnesses) {
            // What is missing then, the test will see.
            each.open.await(end - System.currentTimeMillis(), TimeUnit.MILLISECONDS);
        }
        Object[] accounts = witnesses.stream().map(Witness::account).toArray();
        Files.writeString(Path.of((String)context.get("report")), new JSON().toJSON(accounts));
        for (Witness each : witnesses) {
            each.client.disconnect(Told.TIMEOUT_S * 1000);
        }
    }

    /** A client, and what it hears. */
    private static class Witness {
        final String name;
        final BayeuxClient client;
        final LinkedBlockingQueue<Message> subscribed = new LinkedBlockingQueue<>();
        final CountDownLatch open;
        private final List<Object> heard = new ArrayList<>();
        private final List<Object> faults = new ArrayList<>();
        private int handshakes = 0;

        Witness(Map<?, ?> context, Map<?, ?> about) throws Exception {
            name = (String)about.get("name");
            open = new CountDownLatch(((Number)context.get("publishers")).intValue());
            String channel = (String)context.get("channel");
            client = new BayeuxClient(
                (String)context.get("url"), Told.transportOf((String)about.get("transport")));
            client.setOption(BayeuxClient.BACKOFF_INCREMENT_OPTION, 50L);
            client.getChannel(Channel.META_HANDSHAKE).addListener((MessageListener)(c, reply) -> {
                synchronized (heard) {
                    ++handshakes;
                }
                if (reply.isSuccessful()) {
                    client.getChannel(channel).subscribe(
                        (MessageListener)(any, message) -> hear(message), subscribed::add);
                } else {
                    note(reply);
                }
            });
            client.getChannel(Channel.META_CONNECT).addListener((MessageListener)(c, reply) -> {
                if (!reply.isSuccessful()) {
                    note(reply);
                }
            });
            Object session = about.get("session");
            if (session == null) {
                client.handshake();
            } else {
                client.addExtension(new AckExtension());
                Map<String, Object> delivery = Map.of("session", session);
                // The extension adds to it.
                Map<String, Object> ext = new HashMap<>(Map.of("delivery", delivery));
                client.handshake(new HashMap<>(Map.of("ext", ext)));
            }
        }

        private void hear(Message message) {
            Map<String, Object> data = message.getDataAsMap();
            synchronized (heard) {
                heard.add(new Object[] {
                    data.get("by"), data.get("number"), System.currentTimeMillis()});
            }
            if (data.get("last") == Boolean.TRUE) {
                open.countDown();
            }
        }

        private void note(Message reply) {
            synchronized (heard) {
                faults.add(new Object[] {reply.toString(), System.currentTimeMillis()});
            }
        }

        Map<String, Object> account() {
            synchronized (heard) {
                return Map.of("name", name, "handshakes", handshakes,
                    "heard", heard.toArray(), "faults", faults.toArray());
            }
        }
    }
}
